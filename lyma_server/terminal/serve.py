"""`lyma serve`: the editor's server, for those who have one command on their PATH and not the other."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma serve [ARGUMENT ...]`."""
    parser = subparsers.add_parser(
        "serve",
        description="Speak the editor protocol on stdin and stdout. Editors start this; protocol.md describes it.",
    )
    parser.add_argument("arguments", nargs=REMAINDER, help="what lyma-server takes, such as --stdio")


def run(args: Namespace) -> int:
    """Serve until the editor leaves. The face itself is handed in, since this one knows nothing of it."""
    code: int = args.serve(args.arguments)
    return code
