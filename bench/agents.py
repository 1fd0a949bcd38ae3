"""How long a compiled agent's sandbox takes until it is of use, beside the bare interpreter that runs in it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Figure, Report, figure

if TYPE_CHECKING:
    from lyma_server.factory.bundle import Bundle
    from lyma_server.factory.sandbox import Sandbox

ROUNDS = 31
BARE = ("/usr/bin/python3", "-I", "-c", "pass")
TARGET = 4.0


def report() -> Report:
    """Measure in a throwaway folder; nothing to tell where no sandbox can be had."""
    if sys.platform != "linux":
        return Report(figures=())
    place = Path(tempfile.mkdtemp(prefix="lyma-bench-", dir="/var/tmp"))
    try:
        place.chmod(0o711)
        (place / "in").mkdir()
        return asyncio.run(_report(place / "in"))
    finally:
        shutil.rmtree(place)


async def _report(staged: Path) -> Report:
    from lyma_server.errors import SandboxUnavailable
    from lyma_server.factory.sandbox import Sandbox

    sandbox, bundle = Sandbox(), _bundle()
    start = time.perf_counter()
    try:
        await sandbox.prove()
    except SandboxUnavailable as unavailable:
        return Report(figures=(), table=f"Agents were not measured: {unavailable.message}")
    proof = (time.perf_counter() - start) * 1000
    await _start(sandbox, bundle, staged)
    return Report(figures=(await _figure(sandbox, bundle, staged),), table=_table(proof))


async def _figure(sandbox: Sandbox, bundle: Bundle, staged: Path) -> Figure:
    pairs = []
    for _ in range(ROUNDS):
        ours = await _start(sandbox, bundle, staged)
        start = time.perf_counter()
        await asyncio.to_thread(subprocess.run, BARE, check=True)
        pairs.append((ours, (time.perf_counter() - start) * 1000))
    return figure(
        "an agent's sandbox, from the start to its first message, against a bare `python3 -I -c pass`",
        pairs,
        target=TARGET,
    )


async def _start(sandbox: Sandbox, bundle: Bundle, staged: Path) -> float:
    """Milliseconds until the runner speaks."""
    from lyma_server.factory.sandbox import Launch

    start = time.perf_counter()
    inside = await sandbox.start(Launch(bundle=bundle, staged=staged))
    first = await inside.channel.receive()
    taken = (time.perf_counter() - start) * 1000
    await inside.stop(0)
    if first is None:
        raise RuntimeError("the sandbox did not start")
    return taken


def _bundle() -> Bundle:
    from lyma_server.config.model import CeilingSettings
    from lyma_server.factory.compile import Source, compile_agent
    from lyma_server.factory.template import template

    return compile_agent(Source(template("bench", CeilingSettings()).encode(), {}))


def _table(proof: float) -> str:
    return f"| agents | ms |\n|---|---|\n| the proof that the sandbox holds, once a process | {proof:.0f} |"
