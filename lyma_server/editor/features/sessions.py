"""`lyma/sessions`: conversations on disk, and what their turns changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lyma_server.agent.rewind import find_turn, turn_diff, undo_turn
from lyma_server.agent.texts import map_texts
from lyma_server.editor.features.history import undone_files
from lyma_server.editor.features.workspace import EditorWorkspace
from lyma_server.errors import UsageError
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import AskContext, SessionsResult

if TYPE_CHECKING:
    from lyma_server.agent.session import SessionStore
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.messages import SessionsParams

ROOM_S = 0.01
"""How often to look whether a slow reader has made room."""


async def sessions(server: LymaServer, call: Call) -> Json:
    """List, replay, copy or remove conversations; undo or show what a turn changed."""
    core = await server.engine.open()
    params: SessionsParams = call.params
    answer = await _answer(server, core.agent.sessions, params)
    if params.action == "delete" and core.commands is not None and params.session is not None:
        await core.commands.end(params.session)
    return map_texts(unstructure(answer), server.redact)


async def _answer(server: LymaServer, store: SessionStore, params: SessionsParams) -> SessionsResult:
    """What the request names. Raises SessionNotFound, SessionBusy, UsageError, EditConflict."""
    if params.action == "list":
        return SessionsResult(sessions=await asyncio.to_thread(store.list))
    session = params.session
    if session is None:
        raise UsageError("`session` is missing.", field="session")
    if params.action == "fork":
        return SessionsResult(sessions=(await asyncio.to_thread(store.fork, session),))
    if params.action == "delete":
        await asyncio.to_thread(store.delete, session)
        return SessionsResult()
    if params.action == "load":
        await _replay(server, store, session)
        return SessionsResult(sessions=(await asyncio.to_thread(store.info, session),))
    return await _changes(server, store, session, params)


async def _changes(server: LymaServer, store: SessionStore, session: str, params: SessionsParams) -> SessionsResult:
    """Undo or show the edits of a turn."""
    info = await asyncio.to_thread(store.info, session)
    found = await asyncio.to_thread(find_turn, store, params.turn, session=session)
    workspace = EditorWorkspace(server, None if info.root is None else AskContext(root=info.root))
    if params.action == "diff":
        diff = await asyncio.to_thread(turn_diff, store, found, workspace.root)
        return SessionsResult(sessions=(info,), turn=found.turn, diff=diff)
    done = await undo_turn(store, found, workspace, partial=params.partial)
    return SessionsResult(sessions=(info,), turn=found.turn, files=undone_files(done, workspace))


async def _replay(server: LymaServer, store: SessionStore, session: str) -> None:
    """Send the events again, no faster than the client reads."""
    events = await asyncio.to_thread(lambda: tuple(store.replay_json(session)))
    for event in events if server.client.takes_events else ():
        while server.congested:  # noqa: ASYNC110 - the writer tells how it is, not when it changes
            await asyncio.sleep(ROOM_S)
        server.protocol.notify("lyma/event", event)
