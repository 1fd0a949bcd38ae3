"""Program text of other languages, read for what it would start, remove, write and send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor.marks import DECODED, NETWORK

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

UNSEEN_PROGRAM = "unseen program"
"""The program name under which the rules know text that nobody could read before it runs."""


def read_program(machine: Machine, world: World, language: str, text: str, argv: tuple[str, ...]) -> None:
    """Follow `text`, a program of `language` that `argv` would run."""
    if not text.strip():
        return
    if NETWORK in text or DECODED in text:
        machine.emit(world, argv, program=UNSEEN_PROGRAM)
        return
    if language in ("python", "pypy", "ipython"):
        from lyma_server.executor.languages.python import read_python

        read_python(machine, world, text, argv)
    elif language in ("pwsh", "powershell", "cmd"):
        from lyma_server.executor.languages.windows import read_windows

        read_windows(machine, world, text)
    else:
        from lyma_server.executor.languages.scripts import read_script

        read_script(machine, world, language, text)
