"""`lyma exec`: run one command exactly as the agent would."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import REMAINDER, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.errors import CommandTimeout, UsageError
from lyma_server.terminal.plain import plain
from lyma_server.terminal.printer import write_fully
from lyma_server.terminal.stop import Stop

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from lyma_server.compose import Core
    from lyma_server.executor.run import Command, Commands
    from lyma_server.terminal.commands import Subparsers

CANCELLED = 130
STDOUT = 1
WRITE_HINT = (
    "lyma: commands may write in this folder, in /tmp and in caches only; name more folders in executor.writable.\n"
)

DESCRIPTION = """\
Run a command exactly as the agent would: judged by the blacklist, confined to this folder, without your keys, without
input. Its output goes to stdout as it comes; what it started ends with it. The exit code is that of the command, or 1
where it was not run.
"""
EXAMPLES = """\
examples:
  lyma exec 'make test 2>&1 | tail'
  lyma exec 'cat ~/.lyma/config.toml'      to see that there is nothing to see
  lyma check 'rm -rf build'                only the verdict
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma exec COMMAND`."""
    parser = subparsers.add_parser(
        "exec", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs=REMAINDER, metavar="COMMAND", help="the command, as one word or several")


def run(args: Namespace) -> int:
    """Run it and return its exit code."""
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not any(map(str.strip, words)):
        raise UsageError("Give the command to run, as in: lyma exec 'ls -l'.")
    from lyma_server.compose import build_core

    return asyncio.run(_run(build_core(os.environ), " ".join(words), Path.cwd()))


async def _run(core: Core, text: str, folder: Path) -> int:
    try:
        return await _in_core(core, text, folder)
    finally:
        await core.close()


async def _in_core(core: Core, text: str, folder: Path) -> int:
    commands = _commands(core, folder)
    stop = Stop(asyncio.get_running_loop())
    outlet = _Outlet(stop.ask)
    task = asyncio.ensure_future(commands.run(text, on_bytes=outlet.write))

    def cancel() -> None:
        task.cancel()

    command: Command | None = None
    with stop.on_signals():
        stop.when_asked(cancel)
        try:
            command = await task
        except asyncio.CancelledError:
            pass
        finally:
            for notice in commands.notices:
                sys.stderr.write(f"{plain(notice)}\n")
    if outlet.error is not None:
        raise outlet.error
    return CANCELLED if command is None else _conclude(command, commands)


class _Outlet:
    """Stdout. Where nothing takes the output any more, the error is kept, `lost` is called once and the rest is dropped."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self.error: OSError | None = None
        self._lost = lost

    def write(self, piece: bytes) -> None:
        if self.error is not None:
            return
        try:
            write_fully(STDOUT, piece)
        except OSError as error:
            self.error = error
            self._lost()


def _commands(core: Core, folder: Path) -> Commands:
    from lyma_server.agent.bounds import real_path, user_homes, workspace_refusal

    if core.commands is None:
        raise UsageError("Commands run on Linux only, so far; asking and editing work here.")
    root = real_path(folder)
    if workspace_refusal(root, real_path(core.home.root), user_homes()):
        raise UsageError(f"Lyma runs no commands in {root}; go to a project's folder first.")
    return core.commands.of("", root)


def _conclude(command: Command, commands: Commands) -> int:
    from lyma_server.agent.tools.commands import READ_ONLY

    for each in dict.fromkeys(command.refusals):  # a search along PATH asks for each folder
        sys.stderr.write(plain(f"lyma: refused as it was to be executed ({each.rule}): {each.reason} {each.instead}\n"))
    if command.status and commands.ground.write == "workspace" and READ_ONLY in command.output.text():
        sys.stderr.write(WRITE_HINT)
    if command.timed_out:
        seconds = commands.manner.timeout_s
        raise CommandTimeout(
            f"The command ran longer than {seconds:g} s and was ended; executor.timeout_s can be raised."
        )
    return command.status if command.status is not None else 1
