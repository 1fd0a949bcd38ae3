"""`lyma chat`: a conversation in the terminal, on the same sessions as `lyma ask`."""

from __future__ import annotations

import asyncio
import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define

from lyma_server.agent.texts import map_texts
from lyma_server.errors import LymaError
from lyma_server.garbage import collect_as_usual
from lyma_server.protocol.messages import AskParams
from lyma_server.terminal.ask import last_session, open_core, tell
from lyma_server.terminal.keyboard import Interrupted, keyboard_for
from lyma_server.terminal.plain import plain
from lyma_server.terminal.play import play, view_of
from lyma_server.terminal.reins import Reins

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.agent.disk import DiskWorkspace
    from lyma_server.agent.turn import Turn
    from lyma_server.compose import Core
    from lyma_server.terminal.commands import Subparsers

CANCELLED = 130

DESCRIPTION = """\
Talk to the agent, turn by turn. Enter asks, Alt-Enter begins a new line, the arrow keys bring back what you asked before.
Ctrl-C stops the turn under way and keeps what was said; Ctrl-D leaves. What begins with / is a command; /help lists them.
In a pipe each line is a prompt, and the answers alone go to stdout.
"""
EXAMPLES = """\
examples:
  lyma chat
  lyma chat --continue                   go on with this folder's last session
  printf 'hello\\n/undo\\n' | lyma chat    in a pipe
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma chat …`."""
    parser = subparsers.add_parser(
        "chat", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--continue", action="store_true", dest="latest", help="go on with this folder's last session")
    which.add_argument("--session", metavar="ID", help="go on with this session")
    parser.add_argument("--provider", metavar="NAME", help="ask this provider and no other")
    parser.add_argument("--model", metavar="MODEL", help="ask this model")
    parser.add_argument("--no-tools", action="store_true", help="answer without reading or changing anything")


def run(args: Namespace) -> int:
    """Talk until the person leaves, and return the exit code."""
    folder = Path.cwd()
    return asyncio.run(_run(args, open_core(), folder))


async def _run(args: Namespace, core: Core, folder: Path) -> int:
    from lyma_server.agent.disk import DiskWorkspace

    try:
        tell(core.loaded.notices)
        workspace = DiskWorkspace(folder)
        chat = Chat(
            core=core,
            workspace=workspace,
            session=last_session(core, workspace) if args.latest else args.session,
            provider=args.provider,
            model=args.model,
            tools=not args.no_tools,
        )
        if chat.session is not None:
            core.agent.sessions.info(chat.session)  # one that is not there is told now, not after the first prompt
        collect_as_usual()
        return await _talk(chat)
    finally:
        await core.close()
        tell(core.router.take_notices())


@define
class Chat:
    """Where the conversation stands. `answered` is who gave the last answer."""

    core: Core
    workspace: DiskWorkspace
    session: str | None = None
    provider: str | None = None
    model: str | None = None
    tools: bool = True
    answered: str = ""
    failed: bool = False

    @property
    def status_line(self) -> str:
        """Who answers, in which folder and session."""
        asked = self.provider or self.core.loaded.settings.order[0]
        who = self.answered or f"{asked} {self.model or self.core.loaded.settings.providers[asked].model or 'auto'}"
        session = f"session {self.session[-8:]}" if self.session else "new session"
        folder = "/" if self.workspace.root is None else self.workspace.root.name or "/"
        return f" {who} | {session} | {folder} | /help "

    def params(self, prompt: str) -> AskParams:
        return AskParams(
            prompt=prompt, session=self.session, provider=self.provider, model=self.model, tools=self.tools
        )


async def _talk(chat: Chat) -> int:
    """Take prompts and commands until the end of the input."""
    keyboard = keyboard_for(chat.core.home.root / "history", chat.core.redactor.redact, lambda: chat.status_line)
    reins = Reins(asyncio.get_running_loop(), keyboard.interrupt)
    with reins.held():
        while not reins.let_go:
            try:
                line = await keyboard.read()
            except Interrupted:
                if keyboard.is_person and not reins.let_go:
                    continue
                return CANCELLED
            if line is None:
                break
            if line.strip():
                await _heed(chat, reins, line.strip())
    return CANCELLED if reins.let_go else int(chat.failed and not keyboard.is_person)


async def _heed(chat: Chat, reins: Reins, line: str) -> None:
    """One line: a command or a prompt. What goes wrong is a sentence, and the conversation goes on."""
    from lyma_server.terminal.slash import obey

    try:
        if line.startswith("/") and not line.startswith("//"):
            await obey(chat, line)
        else:
            await _ask(chat, reins, line.removeprefix("/") if line.startswith("//") else line)
    except LymaError as error:
        chat.failed = True
        sys.stdout.flush()
        sys.stderr.write(f"lyma: {plain(map_texts(error.message, chat.core.redactor.redact))}\n")
        sys.stderr.flush()


async def _ask(chat: Chat, reins: Reins, prompt: str) -> None:
    def go_on(turn: Turn) -> None:
        chat.session = turn.session  # also where the turn fails: what was said is in there

    with reins.turn() as stop:
        played = await play(chat.core, chat.params(prompt), chat.workspace, stop, view_of(), begun=go_on)
    if played.broken:
        reins.let_go = True
        if played.problem:
            raise LymaError(f"The answer cannot be written: {played.problem}.")
    answered = [attempt for attempt in played.result.route if attempt.class_ == "ok"]
    if answered:
        chat.answered = f"{answered[-1].provider} {answered[-1].model}"
