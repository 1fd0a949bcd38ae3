"""Beginning and end: initialize, initialized, shutdown, exit."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

from lyma_server import __version__
from lyma_server.editor.client import Client
from lyma_server.editor.logs import log_to_file
from lyma_server.protocol.base import PROTOCOL_VERSION

if TYPE_CHECKING:
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


def register(server: LymaServer) -> None:
    """Register the methods of this subject."""

    def initialize(call: Call) -> Json:
        server.client = Client(call.params)
        server.protocol.state = "ready"
        if server.lifetime is not None and server.client.process_id is not None:
            server.lifetime.watch_process(server.client.process_id, "the editor is gone")
        asyncio.get_running_loop().call_soon(_collect_garbage_again)
        return {
            "capabilities": capabilities(server),
            "serverInfo": {"name": "lyma", "version": __version__},
        }

    async def initialized(_params: Json) -> None:
        core = await server.engine.open()
        log_to_file(core.home.log, server.redact)

    def shutdown(_call: Call) -> Json:
        server.protocol.state = "shut down"
        if server.lifetime is not None:
            server.lifetime.exit_code = 0
        server.turns.cancel()

    def leave(_params: Json) -> None:
        if server.lifetime is not None:
            server.lifetime.end("the client said exit")

    server.feature("initialize")(initialize)
    server.feature("initialized")(initialized)
    server.feature("shutdown")(shutdown)
    server.feature("exit")(leave)
    server.feature("$/cancelRequest")(lambda params: server.protocol.calls.cancel(params.id))
    server.feature("$/setTrace")(lambda _params: None)


def _collect_garbage_again() -> None:
    """Start-up does without; what it made stays for good."""
    gc.freeze()
    gc.enable()


def capabilities(server: LymaServer) -> dict[str, Json]:
    """What we offer, as LSP says it; `experimental.lyma` is ours."""
    return {
        "positionEncoding": server.client.position_encoding,
        "textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": False}},
        "executeCommandProvider": {"commands": list(server.protocol.fm.commands), "workDoneProgress": True},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        "experimental": {"lyma": {"protocolVersion": PROTOCOL_VERSION, "events": {}}},
    }
