"""Keeping up with what the editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.editor.features.positions import split_lines, to_offset

if TYPE_CHECKING:
    from lsprotocol import types

    from lyma_server.editor.server import LymaServer


def did_open(server: LymaServer, params: types.DidOpenTextDocumentParams) -> None:
    """The editor shows a document."""
    document = params.text_document
    server.documents.open(document.uri, document.version, document.text)
    _look(server, document.uri)


def did_change(server: LymaServer, params: types.DidChangeTextDocumentParams) -> None:
    """A document has a new text. We ask for whole texts; a client that sends parts all the same is understood."""
    document = params.text_document
    known = server.documents.find(document.uri)
    if known is None and any(hasattr(change, "range") for change in params.content_changes):
        return  # parts of a text that we never had make no text
    text = "" if known is None else known.text
    for change in params.content_changes:
        text = changed(text, change, server.client.position_encoding)
    if params.content_changes:
        server.documents.change(document.uri, document.version, text)
        _look(server, document.uri)


def changed(text: str, change: types.TextDocumentContentChangeEvent, encoding: str) -> str:
    """`text` after one change: of all of it, or of the part that the change names."""
    place = getattr(change, "range", None)
    if place is None:
        return change.text
    lines = split_lines(text)
    start = to_offset(lines, place.start.line, place.start.character, encoding)
    end = to_offset(lines, place.end.line, place.end.character, encoding)
    return text[:start] + change.text + text[max(start, end) :]


def did_save(server: LymaServer, params: types.DidSaveTextDocumentParams) -> None:
    """A document is on the disk."""
    server.documents.save(params.text_document.uri)
    _look(server, params.text_document.uri)


def did_close(server: LymaServer, params: types.DidCloseTextDocumentParams) -> None:
    """The editor shows a document no longer."""
    server.documents.close(params.text_document.uri)
    if params.text_document.uri in server.told_of:
        from lyma_server.editor.features.agent_diagnostics import forget

        forget(server, params.text_document.uri)


def _look(server: LymaServer, uri: str) -> None:
    """Say what is wrong with an agent, where it is one. Nothing is imported for any other document."""
    if uri.endswith("/agent.toml") or uri.rsplit("/", 2)[-2:-1] in (["tools"], ["schema"]):
        from lyma_server.editor.features.agent_diagnostics import look

        look(server, uri)


def did_change_folders(server: LymaServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders were added to the workspace or removed."""
    folders = server.client.folders
    for folder in params.event.removed:
        folders.pop(folder.uri, None)
    for folder in params.event.added:
        folders[folder.uri] = None
