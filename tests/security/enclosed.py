"""A throwaway world in which the guard stands alone: nothing reads the text of a command, and all of the world may be written.

What is destroyed here is destroyed in a folder of its own: the rest of the machine is bound read-only around it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import attr
import attrs

from lyma_server.executor import enclosure
from lyma_server.executor.exec_judge import Place
from lyma_server.isolation import probe
from lyma_server.isolation.process import run_helper

PLAIN = 54321
SYSTEM_PYTHON = "/usr/bin/python3"
BWRAPS = probe.find_bwraps()
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
ROOT = Path(__file__).resolve().parents[2]

WRAPPER = """#!/bin/sh
[ "$(id -u)" != 0 ] || exec /usr/bin/setpriv --reuid={uid} --regid={uid} --clear-groups -- {python} "$@"
exec {python} "$@"
"""
"""An interpreter for a plain user: ours may lie where only root may go, as may this checkout."""


class World:
    """A base folder with a home in it. `who` is "root" or "plain"."""

    def __init__(self, who: str) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="lyma-world-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.home = self.base / "home" / "dev"
        self.work = self.home / "work"
        self.plain = who == "plain" and os.geteuid() == 0
        self.python = sys.executable
        if self.plain:
            self._copy_programs()

    def _copy_programs(self) -> None:
        """Our code and what it needs, where everybody may read it."""
        programs = self.base / "programs"
        for package in (ROOT / "lyma_server", Path(attr.__file__).parent, Path(attrs.__file__).parent):
            shutil.copytree(package, programs / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        wrapper = programs / "python"
        wrapper.write_text(WRAPPER.format(uid=PLAIN, python=SYSTEM_PYTHON))
        wrapper.chmod(0o755)
        self.python = str(wrapper)

    def furnish(self) -> None:
        """Make the home anew, with a sentinel and a folder that may be removed."""
        shutil.rmtree(self.base / "home", ignore_errors=True)
        (self.work / "build").mkdir(parents=True)
        (self.work / "kept").touch()  # to remove all that is in the workspace is forbidden too
        (self.home / "sentinel").touch()
        (self.home / ".lyma").mkdir()
        if self.plain:
            subprocess.run(["chown", "-R", f"{PLAIN}:{PLAIN}", str(self.base / "home")], check=True)
            self.base.chmod(0o777)

    @property
    def survives(self) -> bool:
        return (self.home / "sentinel").exists()

    def words(self) -> list[str]:
        """A sandbox that bounds nothing in the base."""
        private = ("--unshare-user",) if self.plain or os.geteuid() != 0 else ()
        around = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run")
        return [
            *(str(BWRAPS[0]), "--die-with-parent", "--new-session", "--unshare-pid", *private),
            *(*around, "--bind", str(self.base), str(self.base)),
        ]

    async def open(self, monkeypatch) -> enclosure.Enclosure:
        """The real supervisor, keeper and guard in this world."""
        monkeypatch.setattr(enclosure, "ROOT", Path(self.python).parent if self.plain else ROOT)
        monkeypatch.setattr(enclosure.sys, "executable", self.python)
        words = self.words()
        place = Place(str(self.home), str(self.work), str(self.home / ".lyma"))
        inside = enclosure.new_enclosure()
        await inside.open([words[0], "--as-pid-1", *words[1:]], place)
        return inside

    async def unguarded(self, text: str) -> str:
        """The same without a guard."""
        drop = (
            ["/usr/bin/setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups", "--"] if self.plain else []
        )
        words = [*drop, *self.words(), "/bin/bash", "--noprofile", "--norc", "-c", text]
        result = await run_helper(words, env={**ENVIRONMENT, "HOME": str(self.home)}, cwd=self.work, timeout_s=30)
        return (result.stdout + result.stderr).decode(errors="replace")

    async def guarded(self, inside: enclosure.Enclosure, text: str) -> tuple[enclosure.Process, str]:
        """Run a text that nobody has judged; the process and what it said."""
        words = ["/bin/bash", "--noprofile", "--norc", "-c", text]
        process = await inside.start(words, {**ENVIRONMENT, "HOME": str(self.home)}, str(self.work))
        os.set_blocking(process.output, True)
        async with asyncio.timeout(30):
            await process.gone
            with os.fdopen(process.output, "rb") as output:
                said = await asyncio.to_thread(output.read)
        return process, said.decode(errors="replace")

    def remove(self) -> None:
        shutil.rmtree(self.base)
