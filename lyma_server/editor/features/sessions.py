"""`lyma/sessions`: conversations on disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lyma_server.errors import UsageError
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import SessionsResult

if TYPE_CHECKING:
    from lyma_server.agent.session import SessionStore
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.messages import SessionInfo, SessionsParams

ROOM_S = 0.01
"""How often to look whether a slow reader has made room."""


async def sessions(server: LymaServer, call: Call) -> Json:
    """List, replay, copy or remove conversations."""
    core = await server.engine.open()
    answer = await _answer(server, core.agent.sessions, call.params)
    if call.params.action == "delete" and core.commands is not None:
        await core.commands.end(call.params.session)
    return unstructure(SessionsResult(sessions=answer))


async def _answer(server: LymaServer, store: SessionStore, params: SessionsParams) -> tuple[SessionInfo, ...]:
    """What the request names. Raises SessionNotFound, SessionBusy, UsageError."""
    if params.action == "list":
        return await asyncio.to_thread(store.list)
    session = params.session
    if session is None:
        raise UsageError("`session` is missing.", field="session")
    if params.action == "fork":
        return (await asyncio.to_thread(store.fork, session),)
    if params.action == "delete":
        await asyncio.to_thread(store.delete, session)
        return ()
    await _replay(server, store, session)
    return tuple(info for info in await asyncio.to_thread(store.list) if info.session == session)


async def _replay(server: LymaServer, store: SessionStore, session: str) -> None:
    """Send the events again, no faster than the client reads."""
    events = await asyncio.to_thread(lambda: tuple(store.replay(session)))
    for event in events if server.client.takes_events else ():
        while server.congested:  # noqa: ASYNC110 - the writer tells how it is, not when it changes
            await asyncio.sleep(ROOM_S)
        server.protocol.notify("lyma/event", unstructure(event))
