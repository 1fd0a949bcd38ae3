"""`lyma.undo` and `lyma.diff`: what a turn changed, for an editor that has no plugin for Lyma."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lsprotocol.types import MessageType

from lyma_server.agent.rewind import find_turn, turn_diff, undo_turn
from lyma_server.editor.features.transcript import show_message, show_text
from lyma_server.editor.features.workspace import EditorWorkspace
from lyma_server.errors import LymaError, UsageError
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import SessionsResult, UndoneFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lyma_server.agent.rewind import Edited
    from lyma_server.agent.session import SessionStore
    from lyma_server.agent.undo import Undone
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json


async def undo(server: LymaServer, call: Call) -> Json:
    """Put back what a turn changed, the last one of the workspace where none is named, and tell what became of the files."""
    store, workspace, found = await _found(server, call)
    try:
        done = await undo_turn(store, found, workspace, partial=False)
    except LymaError as problem:
        show_message(server, server.redact(problem.message), MessageType.Error)
        raise
    show_message(server, server.redact(_summary(done)))
    return unstructure(SessionsResult(turn=found.turn, files=undone_files(done, workspace)))


async def diff(server: LymaServer, call: Call) -> Json:
    """Show what it changed in a document, where the editor can open one."""
    store, workspace, found = await _found(server, call)
    text = server.redact(await asyncio.to_thread(turn_diff, store, found, workspace.root))
    if not await show_text(server, f"What turn {found.turn[-8:]} changed", f"```diff\n{text}```\n"):
        show_message(server, text)
    return unstructure(SessionsResult(turn=found.turn, diff=text))


def undone_files(done: Sequence[Undone], workspace: EditorWorkspace) -> tuple[UndoneFile, ...]:
    """The same as the client is told."""
    return tuple(
        UndoneFile(uri=workspace.uri(each.path), outcome=each.outcome, reason=each.reason or None) for each in done
    )


async def _found(server: LymaServer, call: Call) -> tuple[SessionStore, EditorWorkspace, Edited]:
    """The turn that a command names by the end of its id. Raises UsageError."""
    arguments = call.params.arguments or []
    if len(arguments) > 1 or not all(isinstance(each, str) for each in arguments):
        raise UsageError(f"{call.params.command} takes the end of a turn's id, or nothing for the last turn.")
    core = await server.engine.open()
    store, workspace = core.agent.sessions, EditorWorkspace(server, None)
    root = None if workspace.root is None else workspace.uri(workspace.root)
    found = await asyncio.to_thread(find_turn, store, arguments[0] if arguments else None, root=root)
    return store, workspace, found


def _summary(done: Sequence[Undone]) -> str:
    kept = [each for each in done if each.outcome == "kept"]
    names = ", ".join(each.path.name for each in done[:5]) + ("" if len(done) <= 5 else ", …")
    return f"Undone: {names}" if not kept else f"Not put back: {kept[0].path.name}. {kept[0].reason}"
