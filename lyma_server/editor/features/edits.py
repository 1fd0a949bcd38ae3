"""Edits of open documents, as LSP says them and as the client at hand understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lyma_server.editor.features.positions import split_lines, units
from lyma_server.errors import EditConflict

if TYPE_CHECKING:
    from lyma_server.editor.client import Client
    from lyma_server.editor.features.documents import Document
    from lyma_server.protocol.base import Json

_ANNOTATION: Final = "lyma"


def takes_versions(client: Client) -> bool:
    """Whether the client takes `documentChanges`. Neovim only says that it creates and renames files, which are of these."""
    edits = "workspace.workspaceEdit"
    return client.has(f"{edits}.documentChanges") or bool(client.get(f"{edits}.resourceOperations"))


def can_confirm(client: Client) -> bool:
    """Whether the client shows an edit and asks before it makes it."""
    return takes_versions(client) and client.has("workspace.workspaceEdit.changeAnnotationSupport")


def workspace_edit(client: Client, document: Document, text: str, *, confirm: bool = False) -> Json:
    """What makes `text` of a document, bound to its version where the client takes versions. `confirm` needs `can_confirm`.

    Raises EditConflict where the client may count the lines otherwise, so that the edit would hit others.
    """
    edit = minimal_edit(document.text, text, client.position_encoding)
    if any(line.endswith("\r") for line in split_lines(document.text)[: edit["range"]["end"]["line"]]):
        raise EditConflict(
            f"{document.uri} is open and has a carriage return without a line feed, which some editors take for the end of "
            "a line and some do not; close it and try again."
        )
    if not takes_versions(client):
        return {"changes": {document.uri: [edit]}}
    identity = {"uri": document.uri, "version": document.version}
    if not confirm:
        return {"documentChanges": [{"textDocument": identity, "edits": [edit]}]}
    annotation = {"label": "Lyma", "needsConfirmation": True, "description": "Lyma wants to make this change."}
    return {
        "documentChanges": [{"textDocument": identity, "edits": [{**edit, "annotationId": _ANNOTATION}]}],
        "changeAnnotations": {_ANNOTATION: annotation},
    }


def minimal_edit(old: str, new: str, encoding: str) -> Json:
    """One LSP edit of whole lines that makes `new` of `old`: what both begin and end with stays untouched."""
    before, after = split_lines(old), split_lines(new)
    most = min(len(before), len(after))
    head = next((index for index in range(most) if before[index] != after[index]), most)
    most -= head
    tail = next((index for index in range(most) if before[-1 - index] != after[-1 - index]), most)
    end = len(before) - tail
    start_at, end_at = _position(before, head, encoding), _position(before, end, encoding)
    return {"range": {"start": start_at, "end": end_at}, "newText": "".join(after[head : len(after) - tail])}


def _position(lines: list[str], index: int, encoding: str) -> Json:
    """The beginning of a line, or the end of the text."""
    if index < len(lines):
        return {"line": index, "character": 0}
    return {"line": len(lines) - 1, "character": units(lines[-1], encoding)}
