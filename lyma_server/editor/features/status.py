"""`lyma/status`: what is configured and how it fares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server import __version__
from lyma_server.protocol.base import PROTOCOL_VERSION
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import StatusResult

if TYPE_CHECKING:
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


async def status(server: LymaServer) -> StatusResult:
    """The state of the house. Raises ConfigError where the configuration cannot be used."""
    core = await server.engine.open()
    return StatusResult(
        version=__version__,
        protocol=PROTOCOL_VERSION,
        home=str(core.home.root),
        providers=core.provider_status(),
        roots=tuple(server.client.folders),
        sandbox=core.sandbox,
    )


async def answer(server: LymaServer, _call: Call) -> Json:
    """The same as JSON."""
    return unstructure(await status(server))
