"""What an editor can ask for, a module a subject.

Each method names its function; the module is imported when the method is first used, so that a server that has only just
started has not read what it does not need yet. A function takes the server and the Call, or the params of a notification.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.editor.server import LymaServer

METHODS: Final = {
    "initialize": "handshake.initialize",
    "initialized": "handshake.initialized",
    "shutdown": "handshake.shutdown",
    "exit": "handshake.leave",
    "$/cancelRequest": "handshake.cancel_request",
    "$/setTrace": "handshake.set_trace",
    "textDocument/didOpen": "sync.did_open",
    "textDocument/didChange": "sync.did_change",
    "textDocument/didSave": "sync.did_save",
    "textDocument/didClose": "sync.did_close",
    "textDocument/codeAction": "actions.code_actions",
    "codeAction/resolve": "actions.resolve",
    "textDocument/hover": "agent_file.hover",
    "textDocument/completion": "agent_file.complete",
    "textDocument/documentSymbol": "agent_file.symbols",
    "textDocument/codeLens": "agent_file.code_lenses",
    "workspace/didChangeWorkspaceFolders": "sync.did_change_folders",
    "workspace/executeCommand": "commands.execute",
    "window/workDoneProgress/cancel": "ask.cancel_progress",
    "lyma/ask": "ask.ask",
    "lyma/approve": "approvals.approve",
    "lyma/subagent": "agents.subagent",
    "lyma/models": "models.models",
    "lyma/sessions": "sessions.sessions",
    "lyma/status": "status.answer",
}

COMMANDS: Final = {
    "lyma.ask": "commands.ask",
    "lyma.draft_agent": "agent_commands.draft_agent",
    "lyma.compile_agent": "agent_commands.compile_agent",
    "lyma.run_compiled_agent": "agent_commands.run_compiled_agent",
    "lyma.approve": "agent_commands.approve",
    "lyma.reject": "agent_commands.reject",
    "lyma.cancel": "commands.cancel",
    "lyma.undo": "history.undo",
    "lyma.diff": "history.diff",
    "lyma.status": "commands.tell_status",
}


def register(server: LymaServer) -> None:
    """Register all methods and commands with pygls."""
    for name, place in METHODS.items():
        server.feature(name)(_find_later(server, place))
    for name, place in COMMANDS.items():
        server.command(name)(_find_later(server, place))


def _find_later(server: LymaServer, place: str) -> Callable[[Any], Any]:
    module, function = place.split(".")

    def handle(given: Any) -> Any:
        return getattr(import_module(f"{__name__}.{module}"), function)(server, given)

    return handle
