"""A small program that gives up rights, for itself and what it becomes, and then becomes the command.

It is executed for that, since a fork of a process with threads may not run Python before it executes something. Standard
library only, with `-I -S`, so that nothing of the user's is loaded. What cannot be given up ends it: nothing runs then.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from lyma_server.isolation import kernel, reaper, socket_filter
from lyma_server.isolation.grants import Files, entries_of, grants
from lyma_server.isolation.landlock import TRUNCATE_SINCE, Right, Ruleset, Scope, handled_rights, handled_scopes

if TYPE_CHECKING:
    from collections.abc import Sequence

BOOT: Final = (
    "import sys; sys.path.append(sys.argv[1]); from lyma_server.isolation.enter import main; main(sys.argv[2:])"
)
NOT_STARTED: Final = 126


class Runtime(NamedTuple):
    """An interpreter, and the folder that holds our own code."""

    python: str
    packages: Path

    @property
    def bare(self) -> tuple[str, ...]:
        """The words that start the interpreter with nothing of the user's in it, not even installed packages."""
        return (self.python, "-I", "-S", "-B")


OWN_RUNTIME: Final = Runtime(os.path.realpath(sys.executable), Path(__file__).resolve().parents[2])
"""Ours, by its real path: beside that lies no configuration that a command may have written."""


def words(limits: dict[str, Any], runtime: Runtime = OWN_RUNTIME) -> tuple[str, ...]:
    """The words that start this program; the command's come after them."""
    return (*runtime.bare, "-c", BOOT, str(runtime.packages), json.dumps(limits), "--")


def main(arguments: Sequence[str]) -> NoReturn:
    """The arguments are the limits, as JSON, `--`, and the command."""
    limits, command = json.loads(arguments[0]), list(arguments[2:])
    if limits["files"] is None:
        become(limits, None, command)
    files = Files(**limits["files"])
    reaper.keep(files.scratch, lambda: become(limits, files, command))


def become(limits: dict[str, Any], files: Files | None, command: list[str]) -> NoReturn:
    """Give up what `limits` say, and execute the command."""
    try:
        kernel.set_no_new_privileges()
        if limits["capabilities"] is not None:
            kernel.keep_capabilities(frozenset(limits["capabilities"]))
        restrict(limits["abi"], files)
        truncate = files is not None and limits["abi"] < TRUNCATE_SINCE
        if limits["deny_sockets"] or truncate:
            socket_filter.install(sockets=limits["deny_sockets"], truncate=truncate)
        os.execvp(command[0], command)  # noqa: S606 - to become it is what this program is for
    except OSError as error:
        os.write(2, f"lyma: {command[0]} could not be started confined: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def restrict(abi: int, files: Files | None) -> None:
    """Put this process under Landlock: files only where `files` say so, signals and abstract sockets where it knows them."""
    scopes = handled_scopes(abi)
    if files is None and not scopes:
        return
    rights = Right(0) if files is None else handled_rights(abi)
    ruleset = Ruleset(rights, Scope(scopes), abi)
    if files is not None:
        ruleset.grant_all(grants(files, entries_of))
    ruleset.restrict_self()
