"""What the exec guard adds to an exec, and what a whole command takes, beside the same without Lyma."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Figure, Report, figure

if TYPE_CHECKING:
    from lyma_server.executor.run import Commands

EXECS = 100
ROUNDS = 9
LOOP = "s=$EPOCHREALTIME; for i in $(seq EXECS); do PROGRAM; done; e=$EPOCHREALTIME; echo $(( ${e/./} - ${s/./} ))"
SHELL = ("/bin/bash", "--noprofile", "--norc", "-c")
PROGRAMS = {"an exec of `true`": "/bin/true", "an exec of `rm -f` on a file that is not there": "/bin/rm -f nothing"}
EXEC_TARGET_MS, COMMAND_TARGET_MS = 0.3, 60.0


def report() -> Report:
    """Measure in a throwaway home; nothing to tell where commands do not run."""
    if sys.platform != "linux":
        return Report(figures=())
    home = Path(tempfile.mkdtemp(prefix="lyma-bench-", dir="/var/tmp"))
    try:
        return asyncio.run(_report(home))
    finally:
        shutil.rmtree(home)


async def _report(home: Path) -> Report:
    from lyma_server.executor.ground import Ground
    from lyma_server.executor.run import Commands, Manner

    (home / "work").mkdir()
    ground = Ground(workspace=home / "work", user_home=home, lyma_homes=(home / ".lyma",))
    commands = Commands(ground, Manner({"PATH": os.environ["PATH"], "HOME": str(home)}))
    try:
        start = time.perf_counter()
        await commands.run("true")
        first = (time.perf_counter() - start) * 1000
        execs = [await _exec_figure(commands, name, program) for name, program in PROGRAMS.items()]
        return Report(figures=(*execs, await _command_figure(commands)), table=_table(first))
    finally:
        await commands.close()


async def _exec_figure(commands: Commands, name: str, program: str) -> Figure:
    loop = LOOP.replace("PROGRAM", program).replace("EXECS", str(EXECS))
    pairs = []
    for _ in range(ROUNDS):
        ours = int((await commands.run(loop)).output.text())
        theirs = int(await asyncio.to_thread(_bare, loop))
        pairs.append((ours / EXECS / 1000, theirs / EXECS / 1000))
    return figure(
        f"{name} under the guard, against bare", pairs, target=EXEC_TARGET_MS, unit="ms more", runs=ROUNDS * EXECS
    )


async def _command_figure(commands: Commands) -> Figure:
    pairs = []
    for _ in range(3 * ROUNDS):
        start = time.perf_counter()
        await commands.run("true")
        middle = time.perf_counter()
        await asyncio.to_thread(_bare, "true")
        pairs.append(((middle - start) * 1000, (time.perf_counter() - middle) * 1000))
    return figure(
        'a whole `run_command("true")`, against `bash -c true`', pairs, target=COMMAND_TARGET_MS, unit="ms more"
    )


def _bare(text: str) -> bytes:
    return subprocess.run([*SHELL, text], capture_output=True, check=True).stdout


def _table(first: float) -> str:
    return f"| commands | ms |\n|---|---|\n| the first command of a session, its sandbox started and proven | {first:.0f} |"
