"""`lyma/ask`: one turn of the agent, its events, its progress and its one answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.editor.features.context import check_versions, with_plain_positions
from lyma_server.editor.features.events import EventStream
from lyma_server.editor.features.person import EditorPerson
from lyma_server.editor.features.progress import Progress
from lyma_server.editor.features.workspace import EditorWorkspace
from lyma_server.protocol.convert import unstructure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from lsprotocol.types import WorkDoneProgressCancelParams

    from lyma_server.agent.ports import Listener
    from lyma_server.agent.turn import Turn
    from lyma_server.compose import Core
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import Event
    from lyma_server.protocol.messages import AskParams, AskResult

PATIENCE_S: Final = 1.0
"""How long a cancelled ask waits for the core, so that it can end as a turn."""
_ENDINGS: Final = {
    "end_turn": "done",
    "max_tokens": "cut short",
    "max_steps": "out of steps",
    "budget": "out of budget",
}


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


def begin(
    server: LymaServer, core: Core, params: AskParams, *, events: bool, create_progress: bool = False
) -> Conversation:
    """Start a turn. `create_progress`: whoever asked knows nothing of tokens, so that we bring one.

    Raises ServerBusy, SessionBusy, SessionNotFound, DocumentOutOfSync or UsageError before anything begins.
    """
    check_versions(server, params.context)
    workspace = EditorWorkspace(server, params.context)
    plain = with_plain_positions(server, params)
    progress = Progress(server, params.work_done_token, create=create_progress)
    return converse(
        server, progress, lambda hear: core.start(plain, workspace, EditorPerson(server), hear), events=events
    )


def converse(
    server: LymaServer, progress: Progress, start: Callable[[Listener], Turn], *, events: bool
) -> Conversation:
    """Start a turn with those who hear of it. Raises ServerBusy, and what `start` does."""
    server.turns.check_room()
    token = progress.token
    stream = _stream(server) if events else None
    progress.begin()

    def hear(event: Event) -> None:
        progress.hear(event)
        if stream is not None:
            stream(event)

    try:
        turn = start(hear)
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
    if core is not None:
        return _finish(_start(server, core, call))
    return _wait_and_finish(start_when_ready(server, call, call.params, events=server.client.takes_events))


def cancel_progress(server: LymaServer, params: WorkDoneProgressCancelParams) -> None:
    """The person pressed the stop button of a progress report."""
    server.turns.cancel_token(params.token)


def start_when_ready(
    server: LymaServer, call: Call, params: AskParams, *, events: bool, create_progress: bool = False
) -> Coroutine[Any, Any, Conversation]:
    """Wait for the core and begin. A cancellation meanwhile cancels the turn in its first moment; where the core takes its
    time, there is no turn and CancelledError is raised. A cancellation counts from this call on, not from its first await.
    """
    cancelled = asyncio.Event()
    call.on_cancel(cancelled.set)

    def start(core: Core) -> Conversation:
        return begin(server, core, params, events=events, create_progress=create_progress)

    return _start_when_ready(server, call, cancelled, start)


async def _start_when_ready(
    server: LymaServer, call: Call, cancelled: asyncio.Event, start: Callable[[Core], Conversation]
) -> Conversation:
    opening = asyncio.ensure_future(server.engine.open())
    waiting = asyncio.ensure_future(cancelled.wait())
    await asyncio.wait({opening, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not opening.done():
        await asyncio.wait({opening}, timeout=PATIENCE_S)
        opening.cancel()  # without effect on one that is done
    conversation = start(await opening)
    call.on_cancel(conversation.turn.cancel)
    if cancelled.is_set():
        conversation.turn.cancel()
    return conversation


async def _wait_and_finish(starting: Coroutine[Any, Any, Conversation]) -> Json:
    return await _finish(await starting)


def _start(server: LymaServer, core: Core, call: Call) -> Conversation:
    conversation = begin(server, core, call.params, events=server.client.takes_events)
    call.on_cancel(conversation.turn.cancel)
    return conversation


async def _finish(conversation: Conversation) -> Json:
    return unstructure(await conversation.result())
