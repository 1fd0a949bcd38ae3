"""`lyma/models`: what the providers offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.protocol.convert import unstructure

if TYPE_CHECKING:
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


async def models(server: LymaServer, call: Call) -> Json:
    """The models of one provider, or of all."""
    core = await server.engine.open()
    return unstructure(await core.models(call.params.provider))
