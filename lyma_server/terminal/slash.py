"""The commands inside of a conversation: a row each."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from lyma_server.agent.rewind import find_turn, turn_diff, undo_turn
from lyma_server.errors import UsageError
from lyma_server.terminal.plain import plain, plain_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lyma_server.terminal.chat import Chat

    Act: TypeAlias = Callable[[Chat, list[str]], Awaitable[None]]


async def obey(chat: Chat, line: str) -> None:
    """Do what a line that begins with / asks for. Raises LymaError."""
    try:
        name, *words = shlex.split(line[1:])
    except ValueError as error:
        raise UsageError(f"{plain_line(line)} cannot be read: {error}.") from None
    row = next((row for row in ROWS if row.name == name), None)
    if row is None:
        raise UsageError(f"There is no /{plain_line(name)}; /help lists the commands. Begin a prompt with // for a /.")
    if len(words) > row.most:
        raise UsageError(f"/{name} takes {row.arguments or 'nothing'}.")
    await row.act(chat, words)


async def _help(_chat: Chat, _words: list[str]) -> None:
    width = max(len(f"{row.name} {row.arguments}") for row in ROWS)
    rows = "".join(f"  /{f'{row.name} {row.arguments}':{width}}  {row.doc}\n" for row in ROWS)
    _say(f"{rows}Enter asks, Alt-Enter begins a new line, Ctrl-C stops a turn, Ctrl-D leaves. @path names a file.\n")


async def _new(chat: Chat, _words: list[str]) -> None:
    chat.session = None
    _say("A new session begins with your next prompt.\n")


async def _session(chat: Chat, words: list[str]) -> None:
    if words:
        chat.session = chat.core.agent.sessions.info(words[0]).session
    _say(f"session {chat.session}\n" if chat.session else "a new session, which begins with your next prompt\n")


async def _model(chat: Chat, words: list[str]) -> None:
    """Pin a provider, a model, or nothing again."""
    order = chat.core.loaded.settings.order
    if words == ["auto"]:
        chat.provider = chat.model = None
    elif words:
        provider, model = (words[0], words[1:]) if words[0] in order else (None, words)
        if len(model) > 1:
            raise UsageError(f"There is no provider {plain_line(words[0])} in your order ({', '.join(order)}).")
        chat.provider, chat.model = provider, model[0] if model else None
    chat.answered = "" if words else chat.answered
    who = " ".join(part for part in (chat.provider, chat.model) if part)
    _say(f"asking {who}\n" if who else f"asking {', then '.join(order)}\n")


async def _status(chat: Chat, _words: list[str]) -> None:
    from lyma_server.terminal.status import report, status_of

    _say(report(*status_of(chat.core)))


async def _undo(chat: Chat, words: list[str]) -> None:
    from lyma_server.terminal.undo import outcomes

    partial = "--partial" in words
    store = chat.core.agent.sessions
    found = find_turn(store, _turn(words), session=_begun(chat))
    done = await undo_turn(store, found, chat.workspace, partial=partial)
    _say("".join(f"{line}\n" for line in outcomes(done, chat.workspace.root)))


async def _diff(chat: Chat, words: list[str]) -> None:
    from lyma_server.terminal.diff import shown

    store = chat.core.agent.sessions
    found = find_turn(store, _turn(words), session=_begun(chat))
    sys.stdout.write(shown(turn_diff(store, found, chat.workspace.root)))
    sys.stdout.flush()


def _begun(chat: Chat) -> str:
    if chat.session is None:
        raise UsageError("Nothing was asked yet in this session; `lyma undo` and `lyma diff` know earlier ones.")
    return chat.session


def _turn(words: list[str]) -> str | None:
    return next((word for word in words if not word.startswith("--")), None)


def _command(name: str) -> Act:
    """A command of `lyma` itself, in a thread of its own: it may have an event loop of its own."""

    async def act(_chat: Chat, words: list[str]) -> None:
        from lyma_server.terminal.main import run_command

        sys.stdout.flush()
        await asyncio.to_thread(run_command, [name, *words], argparse.Namespace())
        sys.stdout.flush()

    return act


def _say(text: str) -> None:
    """Beside the answers, which alone go to a pipe."""
    sys.stdout.flush()
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    stream.write(plain(text))
    stream.flush()


@frozen
class SlashRow:
    """A command: its name, what it takes, what it does, and at most how many words."""

    name: str
    arguments: str
    doc: str
    act: Act
    most: int


ROWS: tuple[SlashRow, ...] = (
    SlashRow("help", "", "list these commands", _help, 0),
    SlashRow("undo", "[TURN] [--partial]", "put back what the last turn changed, or another one", _undo, 2),
    SlashRow("diff", "[TURN]", "show what it changed", _diff, 1),
    SlashRow("new", "", "begin a new session", _new, 0),
    SlashRow("session", "[ID]", "say which session this is, or go on with another", _session, 1),
    SlashRow("sessions", "", "list the sessions of this folder", _command("sessions"), 0),
    SlashRow("model", "[PROVIDER] [MODEL]", "ask this one and no other; /model auto asks as configured", _model, 2),
    SlashRow("status", "", "show providers, keys (masked), cooldowns and usage", _status, 0),
    SlashRow("agents", "", "list the compiled agents", _command("agents"), 0),
    SlashRow("approve", "[HASH]", "read a compiled agent and let it run", _command("approve"), 1),
)
