"""Keeping up with what the editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types

    from lyma_server.editor.server import LymaServer


def did_open(server: LymaServer, params: types.DidOpenTextDocumentParams) -> None:
    """The editor shows a document."""
    document = params.text_document
    server.documents.open(document.uri, document.version, document.text)


def did_change(server: LymaServer, params: types.DidChangeTextDocumentParams) -> None:
    """A document has a new text: with full sync the last change is all of it."""
    document = params.text_document
    if params.content_changes:
        server.documents.change(document.uri, document.version, params.content_changes[-1].text)


def did_save(server: LymaServer, params: types.DidSaveTextDocumentParams) -> None:
    """A document is on the disk."""
    server.documents.save(params.text_document.uri)


def did_close(server: LymaServer, params: types.DidCloseTextDocumentParams) -> None:
    """The editor shows a document no longer."""
    server.documents.close(params.text_document.uri)


def did_change_folders(server: LymaServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders were added to the workspace or removed."""
    folders = server.client.folders
    for folder in params.event.removed:
        folders.pop(folder.uri, None)
    for folder in params.event.added:
        folders[folder.uri] = None
