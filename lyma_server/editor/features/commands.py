"""`workspace/executeCommand`: Lyma for an editor that has no plugin for it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from lsprotocol.types import MessageType

from lyma_server.editor.features.ask import start_when_ready
from lyma_server.editor.features.status import status
from lyma_server.editor.features.transcript import append, show_file, show_message
from lyma_server.errors import LymaError, UsageError
from lyma_server.protocol.base import evolve
from lyma_server.protocol.convert import structure, unstructure
from lyma_server.protocol.messages import AskParams

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from lyma_server.editor.features.ask import Conversation
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.messages import AskResult, StatusResult


def execute(server: LymaServer, call: Call) -> Any:
    """Run a command. Raises UsageError where there is none of that name."""
    command = server.protocol.fm.commands.get(call.params.command)
    if command is None:
        raise UsageError(f"There is no command {call.params.command[:100]}.")
    return command(call)


def ask(server: LymaServer, call: Call) -> Coroutine[Any, Any, Json]:
    """Ask, and show the answer in a document or a message."""
    params = ask_params(call.params.arguments, call.params.work_done_token)
    events = server.client.asked_for_events
    starting = start_when_ready(server, call, params, events=events, create_progress=not events)
    return _ask(server, params, starting)


async def _ask(server: LymaServer, params: AskParams, starting: Coroutine[Any, Any, Conversation]) -> Json:
    try:
        result = await (await starting).result()
    except LymaError as problem:
        show_message(server, server.redact(problem.message), MessageType.Error)
        raise
    await _show_answer(server, params, result)
    return unstructure(result)


def cancel(server: LymaServer, call: Call) -> Json:
    """Cancel the turns of a session, or all."""
    return {"cancelled": server.turns.cancel(_session(call.params.arguments))}


async def tell_status(server: LymaServer, _call: Call) -> Json:
    """Show the state of the house in a message."""
    found = await status(server)
    show_message(server, describe_status(found))
    return unstructure(found)


def ask_params(arguments: Any, token: str | int | None) -> AskParams:
    """A prompt, or the params of `lyma/ask`. Raises UsageError."""
    if not arguments or len(arguments) > 1:
        raise UsageError("lyma.ask takes one argument: a prompt, or an object like the params of lyma/ask.")
    given = {"prompt": arguments[0]} if isinstance(arguments[0], str) else arguments[0]
    params = structure(AskParams, given, closed=True)
    return params if token is None else evolve(params, work_done_token=token)


def describe_status(found: StatusResult) -> str:
    """Two or three lines for a person."""
    lines = [f"Lyma {found.version}, home {found.home}"]
    for provider in found.providers:
        ready = sum(key.state == "ready" for key in provider.keys)
        lines.append(f"{provider.name}: {provider.model}, {ready} of {len(provider.keys)} keys ready")
    return "\n".join(lines)


async def _show_answer(server: LymaServer, params: AskParams, result: AskResult) -> None:
    """In a document where the editor can open one, else in a message."""
    folder = (await server.engine.open()).home.root / "transcripts"
    prompt = params.prompt if isinstance(params.prompt, str) else "(blocks)"
    quoted = "\n".join(f"> {line}" for line in server.redact(prompt).splitlines())
    with contextlib.suppress(OSError):
        path = append(folder, result.session, f"{quoted}\n\n{result.text}\n\n")
        if await show_file(server, path):
            return
    show_message(server, result.text or f"Lyma: {result.stop_reason}")


def _session(arguments: Any) -> str | None:
    """The session that a command names: as a string, or as the member `session`; null for all."""
    first = arguments[0] if arguments else None
    session = first.get("session") if isinstance(first, dict) else first
    if session is not None and not isinstance(session, str):
        raise UsageError("lyma.cancel takes a session's id, or nothing.")
    return session
