"""`lyma diff`: show what a turn changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lyma_server.terminal.plain import plain, styled
from lyma_server.terminal.sessions import open_store, own_folder, own_uri

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.terminal.commands import Subparsers

COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
RESET = "\x1b[0m"


def add_parser(subparsers: Subparsers) -> None:
    """`lyma diff [TURN] [--session ID]`."""
    parser = subparsers.add_parser(
        "diff",
        description="Show what a turn changed with its file tools, as a unified diff. Without TURN it is the turn that "
        "`lyma undo` would undo.",
        epilog="`lyma diff | git apply -R` undoes it as well, where the files are in place.",
    )
    parser.add_argument("turn", nargs="?", metavar="TURN", help="its id, or the end of it")
    parser.add_argument("--session", metavar="ID", help="look in this session, wherever it worked")


def run(args: Namespace) -> int:
    """Print it; nothing where the turn left all as it was."""
    from lyma_server.agent.rewind import find_turn, turn_diff

    store = open_store()
    found = find_turn(store, args.turn, session=args.session, root=own_uri())
    sys.stdout.write(shown(turn_diff(store, found, own_folder().root)))
    return 0


def shown(diff: str) -> str:
    """As stdout takes it: a pipe exactly, a terminal without control characters."""
    if not sys.stdout.isatty():
        return diff
    return coloured(diff) if styled(sys.stdout) else plain(diff)


def coloured(diff: str) -> str:
    """For a terminal: what was added and removed in colours, control characters shown."""
    lines = [(COLOURS.get(line[:1], ""), plain(line)) for line in diff.removesuffix("\n").split("\n")]
    return "".join(f"{colour}{line}{RESET}\n" if colour else f"{line}\n" for colour, line in lines)
