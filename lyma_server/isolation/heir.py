"""Removes what we have put down for a moment, where we are killed and cannot do it ourselves.

An heir is a shell that waits for the end of what it can read, which comes with our end, however that comes. It is started
before there is anything to remove, is told the exact paths then, and follows no link (rm(1)). Nobody else may have a way to
put something in their place: they lie in a folder of ours, or bear random names in one where only we may rename them.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define

from lyma_server.isolation.launch import PATH, HelperFailed, close_pipes, collect, launch, spare

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.isolation.launch import Process

SHELL: Final = "/bin/sh"
PACKAGES: Final = Path(__file__).resolve().parents[2]
SWEEP: Final = "import sys; sys.path.insert(0, sys.argv[1]); from lyma_server.isolation.cell_sweep import main; main()"

WAIT: Final = """trap '' HUP INT TERM
exec >/dev/null 2>&1
read -r _
program=$1 code=$2 packages=$3
shift 3
rm -rf -- "$@"
exec "$program" -I -S -B -c "$code" "$packages"
"""
"""Nothing is ever written to it. After the folders go the first processes of cells that had not yet been let go on."""


@define(eq=False)
class Heir:
    """One that waits. It is dismissed when there is nothing left to remove."""

    _process: Process | None

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Heir:
        """Name the one for `paths`, which need not be there yet.

        Where there is no shell there is none, and what is left is removed by the next of us.
        """
        words = [SHELL, "-c", WAIT, "heir", sys.executable, SWEEP, str(PACKAGES), *map(str, paths)]
        process = None
        with suppress(HelperFailed):
            process = launch(words, env={"PATH": PATH}, cwd="/", stdin_pipe=True, tether=False)
            spare(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return cls(process)

    def dismiss(self) -> None:
        """End it, without its having done anything. Idempotent."""
        if self._process is not None:
            collect(self._process)
            close_pipes(self._process)
            self._process = None
