"""`lyma undo`: put back what a turn changed."""

from __future__ import annotations

import asyncio
import sys
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING

from lyma_server.errors import EditConflict
from lyma_server.terminal.plain import plain_line
from lyma_server.terminal.sessions import open_store, own_folder, own_uri

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from pathlib import Path

    from lyma_server.agent.undo import Undone
    from lyma_server.terminal.commands import Subparsers

DESCRIPTION = """\
Put back, byte for byte, the files that a turn changed, made or deleted with its file tools; what its commands did is not
known and stays. Without TURN it is the last one in this folder that changed files and was not undone, so that undoing
twice goes back two turns. Where a file was changed since, by you or by a later turn, nothing at all is put back.
"""
EXAMPLES = """\
examples:
  lyma diff                  look first: what the last turn changed
  lyma undo
  lyma undo 7h2mq0ac         a turn by the end of its id; `lyma sessions show ID` lists them
  lyma undo --partial        put back what can be put back, and leave the files that were changed since
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma undo [TURN] [--session ID] [--partial]`."""
    parser = subparsers.add_parser(
        "undo", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("turn", nargs="?", metavar="TURN", help="its id, or the end of it")
    parser.add_argument("--session", metavar="ID", help="look in this session, wherever it worked")
    parser.add_argument(
        "--partial", action="store_true", help="leave the files that were changed since, put the others back"
    )


def run(args: Namespace) -> int:
    """Undo, and return 0 where every file is as it was before the turn."""
    from lyma_server.agent.rewind import find_turn, undo_turn

    store, workspace = open_store(), own_folder()
    found = find_turn(store, args.turn, session=args.session, root=own_uri())
    try:
        done = asyncio.run(undo_turn(store, found, workspace, partial=args.partial))
    except EditConflict as error:
        error.message = f"{error.message} (`lyma undo {found.turn[-8:]} --partial`)"
        raise
    sys.stdout.write(f"turn {found.turn}\n")
    sys.stdout.writelines(f"{line}\n" for line in outcomes(done, workspace.root))
    return 1 if any(each.outcome == "kept" for each in done) else 0


def outcomes(done: Sequence[Undone], root: Path | None) -> list[str]:
    """A line for each file."""
    names = [each.path.relative_to(root) if root and each.path.is_relative_to(root) else each.path for each in done]
    return [
        plain_line(f"{each.outcome} {name}{f': {each.reason}' if each.reason else ''}", 400)
        for each, name in zip(done, names, strict=True)
    ]
