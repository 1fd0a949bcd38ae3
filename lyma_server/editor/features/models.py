"""`lyma/models`: what the providers offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


def register(server: LymaServer) -> None:
    """Register the methods of this subject."""
    from lyma_server.protocol.convert import unstructure

    async def answer(call: Call) -> Json:
        core = await server.engine.open()
        return unstructure(await core.router.models(call.params.provider))

    server.feature("lyma/models")(answer)
