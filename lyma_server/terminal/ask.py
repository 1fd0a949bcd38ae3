"""`lyma ask`: one turn, streamed."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.agent.texts import map_texts
from lyma_server.errors import LymaError, UsageError
from lyma_server.protocol.convert import error_data
from lyma_server.protocol.messages import AskParams
from lyma_server.terminal.attach import content_of, named_file
from lyma_server.terminal.plain import plain
from lyma_server.terminal.play import play, view_of
from lyma_server.terminal.stop import Stop
from lyma_server.terminal.view import json_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.agent.disk import DiskWorkspace
    from lyma_server.compose import Core
    from lyma_server.protocol.messages import Block
    from lyma_server.terminal.commands import Subparsers

CANCELLED = 130

DESCRIPTION = """\
Ask, and stream the answer. In a folder the agent can read, search and change its files; in your home or / it answers
without tools. The answer goes to stdout, all else to stderr. Ctrl-C stops the turn and keeps what was said; a second one
leaves at once.
"""
EXAMPLES = """\
examples:
  lyma ask "what does this project do?"
  lyma ask "explain @src/main.py:10-40"            a file or some of its lines, named in the prompt
  lyma ask --file notes.txt "what is missing here?"
  git diff | lyma ask "review this" -              - stands for stdin
  lyma ask --continue "and now with tests"
  lyma ask --provider deepseek "hello"             this provider or none
  lyma ask --json "hello" | jq -r 'select(.type == "result").text'
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma ask [PROMPT|-] …`."""
    parser = subparsers.add_parser(
        "ask", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to ask; - is replaced by stdin")
    parser.add_argument("--file", action="append", default=[], metavar="PATH[:A-B]", help="send a file, or lines of it")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--continue", action="store_true", dest="latest", help="go on with this folder's last session")
    which.add_argument("--session", metavar="ID", help="go on with this session")
    parser.add_argument("--provider", metavar="NAME", help="ask this provider and no other")
    parser.add_argument("--prefer", metavar="NAME", help="ask this provider first")
    parser.add_argument("--model", metavar="MODEL", help="ask this model")
    parser.add_argument("--no-tools", action="store_true", help="answer without reading or changing anything")
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON, and last the result")


def run(args: Namespace) -> int:
    """Ask and return the exit code."""
    folder = Path.cwd()
    typed, piped = _prompt(args.prompt)
    content = content_of(typed, piped, [named_file(reference, folder) for reference in args.file], folder)
    try:
        core = open_core()
        return asyncio.run(_ask(args, core, content, folder))
    except LymaError as error:
        if args.json:
            sys.stdout.write(json_line({"type": "error", **error_data(error)}))
        raise


def open_core() -> Core:
    """The core of the settings. Before there is an event loop: that would keep the first Ctrl-C to itself while the command of a key runs."""
    from lyma_server.compose import build_core

    return build_core(os.environ)


async def _ask(args: Namespace, core: Core, content: str | tuple[Block, ...], folder: Path) -> int:
    try:
        tell(core.loaded.notices)
        return await _turn(args, core, content, folder)
    except LymaError as error:
        error.message = core.redactor.redact(error.message)
        error.data = map_texts(error.data, core.redactor.redact)
        raise
    finally:
        await core.close()
        tell(core.router.take_notices())


def tell(notices: Iterable[str]) -> None:
    """Say what a person may want to know of, beside the answer."""
    for notice in notices:
        sys.stderr.write(f"{plain(notice)}\n")


async def _turn(args: Namespace, core: Core, content: str | tuple[Block, ...], folder: Path) -> int:
    from lyma_server.agent.disk import DiskWorkspace

    workspace = DiskWorkspace(folder)
    params = AskParams(
        prompt=content,
        session=last_session(core, workspace) if args.latest else args.session,
        provider=args.provider,
        prefer=args.prefer,
        model=args.model,
        tools=not args.no_tools,
    )
    stop = Stop(asyncio.get_running_loop())
    with stop.on_signals():
        played = await play(core, params, workspace, stop, view_of(as_json=args.json))
    if played.problem:
        raise LymaError(f"The answer cannot be written: {played.problem}.")
    if played.broken:
        return 1
    return CANCELLED if played.result.stop_reason == "cancelled" else 0


def last_session(core: Core, workspace: DiskWorkspace) -> str:
    """The session that was used last in the folder. Raises UsageError."""
    session = core.agent.sessions.latest(None if workspace.root is None else workspace.uri(workspace.root))
    if session is None:
        raise UsageError("There is no earlier session in this folder; leave --continue out to begin one.")
    return session


def _prompt(words: list[str]) -> tuple[str, str]:
    """What was typed, and what came through stdin."""
    if not words and sys.stdin.isatty():
        raise UsageError('There is nothing to ask. Try `lyma ask "what does this project do?"`.')
    typed = " ".join(word for word in words if word != "-")
    piped = "" if words and "-" not in words else sys.stdin.buffer.read().decode(errors="replace")
    if not typed.strip() and not piped.strip():
        raise UsageError("There is nothing to ask: the prompt is empty.")
    return typed, piped
