"""`lyma/ask`: one turn of the agent, its events, its progress and its one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from lyma_server.editor.features.context import with_plain_positions
from lyma_server.editor.features.events import EventStream
from lyma_server.editor.features.person import EditorPerson
from lyma_server.editor.features.progress import Progress
from lyma_server.editor.features.workspace import EditorWorkspace
from lyma_server.protocol.convert import unstructure

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from lsprotocol.types import WorkDoneProgressCancelParams

    from lyma_server.agent.turn import Turn
    from lyma_server.compose import Core
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import Event
    from lyma_server.protocol.messages import AskParams, AskResult

_ENDINGS = {"end_turn": "done", "max_tokens": "cut short", "max_steps": "out of steps", "budget": "out of budget"}


@frozen
class Conversation:
    """A turn that has begun, with those who hear of it."""

    server: LymaServer
    turn: Turn
    token: str | int | None
    stream: EventStream | None
    progress: Progress

    async def result(self) -> AskResult:
        """The result, after the last event. Raises what ended the turn."""
        ending = "failed"
        try:
            result = await self.server.turns.finish(self.turn, self.token)
            ending = _ENDINGS.get(result.stop_reason, result.stop_reason)
            return result
        finally:
            if self.stream is not None:
                self.stream.close()
            self.progress.end(ending)


def begin(server: LymaServer, core: Core, params: AskParams, *, events: bool) -> Conversation:
    """Start a turn. Raises ServerBusy, SessionBusy, SessionNotFound or UsageError before anything begins."""
    server.turns.check_room()
    token = params.work_done_token
    progress = Progress(server, token)
    stream = _stream(server) if events else None
    progress.begin()

    def hear(event: Event) -> None:
        progress.hear(event)
        if stream is not None:
            stream(event)

    workspace = EditorWorkspace(server, params.context)
    try:
        turn = core.start(with_plain_positions(server, params), workspace, EditorPerson(server), hear)
    except BaseException:
        progress.end("refused")
        raise
    server.turns.add(turn, token)
    return Conversation(server, turn, token, stream, progress)


def _stream(server: LymaServer) -> EventStream:
    return EventStream(lambda params: server.protocol.notify("lyma/event", params), lambda: server.congested)


def ask(server: LymaServer, call: Call) -> Coroutine[Any, Any, Json]:
    """Begin at once where the core is there, so that a cancellation that follows meets a turn."""
    core = server.engine.core
    return _wait_and_ask(server, call) if core is None else _finish(_start(server, core, call))


def cancel_progress(server: LymaServer, params: WorkDoneProgressCancelParams) -> None:
    """The person pressed the stop button of a progress report."""
    server.turns.cancel_token(params.token)


async def _wait_and_ask(server: LymaServer, call: Call) -> Json:
    return await _finish(_start(server, await server.engine.open(), call))


def _start(server: LymaServer, core: Core, call: Call) -> Conversation:
    conversation = begin(server, core, call.params, events=server.client.takes_events)
    call.on_cancel(conversation.turn.cancel)
    return conversation


async def _finish(conversation: Conversation) -> Json:
    return unstructure(await conversation.result())
