"""Beginning and end: initialize, initialized, shutdown, exit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lyma_server import __version__
from lyma_server.editor.client import Client
from lyma_server.editor.logs import log_to_file
from lyma_server.garbage import collect_as_usual
from lyma_server.protocol.base import PROTOCOL_VERSION

if TYPE_CHECKING:
    from lsprotocol.types import CancelParams

    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


def initialize(server: LymaServer, call: Call) -> Json:
    """Learn what the editor can do and say what we can."""
    server.client = Client(call.params)
    server.protocol.state = "ready"
    if server.lifetime is not None and server.client.process_id is not None:
        server.lifetime.watch_process(server.client.process_id, "the editor is gone")
    asyncio.get_running_loop().call_soon(collect_as_usual)
    return {"capabilities": capabilities(server), "serverInfo": {"name": "lyma", "version": __version__}}


async def initialized(server: LymaServer, _params: Json) -> None:
    """The editor is ready: build the core while nobody waits for it, and read what the first ask needs."""
    core, _ = await asyncio.gather(server.engine.open(), asyncio.to_thread(_read_ahead))
    log_to_file(core.home.log, server.redact)


def shutdown(server: LymaServer, _call: Call) -> Json:
    """Stop what runs; the process ends with `exit`."""
    server.protocol.state = "shut down"
    if server.lifetime is not None:
        server.lifetime.exit_code = 0
    server.turns.cancel()


def leave(server: LymaServer, _params: Json) -> None:
    """End: with 0 after a shutdown, else with 1."""
    if server.lifetime is not None:
        server.lifetime.end("the client said exit")


def cancel_request(server: LymaServer, params: CancelParams) -> None:
    """The client does not want to wait for a request any longer."""
    server.protocol.calls.cancel(params.id)


def set_trace(_server: LymaServer, _params: object) -> None:
    """Nothing is traced to the client: the log is in a file."""


def _read_ahead() -> None:
    from lyma_server.editor.features import ask, commands
    from lyma_server.protocol.registry import METHOD_BY_NAME

    del ask, commands, METHOD_BY_NAME


def capabilities(server: LymaServer) -> dict[str, Json]:
    """What we offer, as LSP says it; `experimental.lyma` is ours."""
    return {
        "positionEncoding": server.client.position_encoding,
        "textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": False}},
        "codeActionProvider": {
            "codeActionKinds": ["quickfix.lyma", "refactor.rewrite.lyma", "source.lyma"],
            "resolveProvider": True,
        },
        "hoverProvider": True,
        "completionProvider": {"triggerCharacters": ["[", '"', "="]},
        "documentSymbolProvider": True,
        "codeLensProvider": {"resolveProvider": False},
        "executeCommandProvider": {"commands": list(server.protocol.fm.commands), "workDoneProgress": True},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        "experimental": {
            "lyma": {"protocolVersion": PROTOCOL_VERSION, "events": {}, "approvals": {}, "diagnostics": {}}
        },
    }
