"""`lyma sessions`: conversations on disk. Also what the other commands of sessions share."""

from __future__ import annotations

import os
import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.config.paths import Home
from lyma_server.errors import UsageError
from lyma_server.terminal.plain import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.agent.disk import DiskWorkspace
    from lyma_server.agent.session import SessionStore
    from lyma_server.terminal.commands import Subparsers

EXAMPLES = """\
examples:
  lyma sessions                        those of this folder; --all for those of every folder
  lyma sessions show ID                what was said, and which turns changed files
  lyma sessions fork ID                a copy that goes its own way
  lyma sessions delete ID              gone, with what it takes to undo its edits
  lyma sessions prune --days 30        remove those that nobody has used for 30 days
  lyma ask --session ID "and then?"    go on with one

Sessions are kept for sessions.keep_days days (90); `lyma config set sessions.keep_days 30` changes that.
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma sessions [list|show|fork|delete|prune] …`."""
    parser = subparsers.add_parser(
        "sessions",
        description="List conversations, show, copy or remove one, or remove the old ones.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", nargs="?", choices=tuple(ACTIONS), default="list", metavar="ACTION", help="see below")
    parser.add_argument("session", nargs="?", metavar="ID", help="the session, for show, fork and delete")
    parser.add_argument("--all", action="store_true", help="list those of every folder")
    parser.add_argument("--days", type=int, metavar="N", help="prune: instead of sessions.keep_days")
    parser.add_argument("--json", action="store_true", help="list: a session a line; show: an event a line")


def run(args: Namespace) -> int:
    """Do what is asked and return the exit code."""
    if (args.session is not None) != (args.action in NEED_ONE):
        takes = "one session, which `lyma sessions` lists" if args.action in NEED_ONE else "no session"
        raise UsageError(f"`lyma sessions {args.action}` takes {takes}.")
    ACTIONS[args.action](open_store(), args)
    return 0


def open_store() -> SessionStore:
    """The sessions of this user's home. Raises ConfigError."""
    from lyma_server.agent.session import SessionStore
    from lyma_server.config.load import load_settings

    home = Home.find(os.environ)
    home.ensure()
    return SessionStore(home.sessions, load_settings(os.environ, home).settings.sessions.keep_days)


def own_folder() -> DiskWorkspace:
    """The folder that the person is in."""
    from lyma_server.agent.disk import DiskWorkspace

    return DiskWorkspace(Path.cwd())


def own_uri() -> str:
    """Its URI, as sessions keep it."""
    return Path.cwd().resolve().as_uri()


def _list(store: SessionStore, args: Namespace) -> None:
    from lyma_server.agent.session import same_address

    found = [info for info in store.list() if args.all or same_address(info.root, own_uri())]
    if args.json:
        from lyma_server.protocol.convert import unstructure
        from lyma_server.terminal.view import json_line

        sys.stdout.write("".join(json_line(unstructure(info)) for info in found))
        return
    if not found:
        where = "" if args.all else " in this folder; --all lists those of every folder"
        sys.stdout.write(f"There are no sessions{where}.\n")
        return
    from lyma_server.terminal.table import table, terminal_columns

    rows = [(info.session, info.updated[:16].replace("T", " "), str(info.turns), info.title) for info in found]
    sys.stdout.write(table(("session", "used last (UTC)", "turns", "title"), rows, terminal_columns()))


def _show(store: SessionStore, args: Namespace) -> None:
    if args.json:
        from lyma_server.protocol.convert import unstructure
        from lyma_server.terminal.view import json_line

        for event in store.replay(args.session):
            sys.stdout.write(json_line(unstructure(event)))
        return
    from lyma_server.terminal.conversation import told

    for line in told(store, args.session):
        sys.stdout.write(f"{plain(line)}\n")


def _fork(store: SessionStore, args: Namespace) -> None:
    sys.stdout.write(f"{store.fork(args.session).session}\n")


def _delete(store: SessionStore, args: Namespace) -> None:
    store.delete(args.session)
    sys.stdout.write(f"{args.session} is gone.\n")


def _prune(store: SessionStore, args: Namespace) -> None:
    if args.days is not None and args.days < 0:
        raise UsageError(f"--days is {args.days}; it must be 0 or more.")
    sys.stdout.write(f"{store.prune(args.days)} sessions were removed.\n")


ACTIONS = {"list": _list, "show": _show, "fork": _fork, "delete": _delete, "prune": _prune}
NEED_ONE = ("show", "fork", "delete")
