"""The files as the editor sees them: what is open goes through it, everything else through the disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pygls.exceptions import JsonRpcException

from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.lines import same_lines
from lyma_server.agent.ports import FileChange, FileText
from lyma_server.editor.features.edits import can_confirm, workspace_edit
from lyma_server.editor.features.uris import is_inside, real_path, to_path, to_uri
from lyma_server.errors import EditConflict, ToolError

if TYPE_CHECKING:
    from lyma_server.editor.features.documents import Document
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.messages import AskContext

_EDITOR_S: Final = 30
_PERSON_S: Final = 600
_ECHO_S: Final = 3
"""How long an editor may take to tell of the change that it has just made; Neovim waits 150 ms on purpose."""


class EditorWorkspace:
    """Implements Workspace for one ask."""

    def __init__(self, server: LymaServer, context: AskContext | None) -> None:
        self._server = server
        self._root = find_root(list(server.client.folders), context)
        self._disk = DiskWorkspace(self._root)

    @property
    def root(self) -> Path | None:
        """The folder that the client names, or the workspace folder that owns the active file."""
        return self._root

    def uri(self, path: Path) -> str:
        """The URI as the client writes it where the file is open."""
        document = self._server.documents.at(path)
        return to_uri(path) if document is None else document.uri

    def path(self, uri: str) -> Path:
        """The absolute path of a `file:` URI. Raises UsageError for any other."""
        return to_path(uri)

    async def read(self, path: Path) -> FileText:
        """A dirty buffer beats the disk; the disk beats a buffer that the person has not touched.

        Raises FileMissing, or ToolError where it is not a text or is too large.
        """
        document = self._server.documents.at(path)
        if document is None:
            return await self._disk.read(path)
        stored = await self._read_stored(path)
        if not document.dirty and stored is not None and not same_lines(stored.text, document.text):
            return stored
        if "\0" in document.text:
            raise ToolError(f"{path} holds a NUL, so it is no text, and is neither shown nor changed.")
        encoding = "utf-8" if stored is None else stored.encoding
        return FileText(path, document.text, document.base, from_editor=True, encoding=encoding)

    def confirms(self, path: Path) -> bool:
        """Whether the editor itself asks the person about an edit: of a file that is open, where it can."""
        return self._server.documents.at(path) is not None and can_confirm(self._server.client)

    async def apply(self, change: FileChange) -> None:
        """Make the change through the editor where the file is open. Raises EditConflict, or ToolError where it is refused."""
        document = self._server.documents.at(change.path)
        if document is None or (change.base is not None and not change.base.startswith("buffer:")):
            if document is not None and document.dirty:
                raise EditConflict(f"{change.path} is open with changes that are not saved.")
            await self._disk.apply(change)
        elif change.base != document.base:
            raise EditConflict(f"{change.path} has changed in the editor since it was read; read it again.")
        elif change.text is None:
            await self._delete(change.path, document)
        else:
            await self._edit(change.path, document, change.text, confirm=change.confirm)

    async def _read_stored(self, path: Path) -> FileText | None:
        try:
            return await self._disk.read(path)
        except ToolError:
            return None

    async def _delete(self, path: Path, document: Document) -> None:
        """Delete a file that is shown as it is on the disk; what was never saved would be lost."""
        stored = await self._read_stored(path)
        if document.dirty or stored is None or not same_lines(stored.text, document.text):
            raise EditConflict(f"{path} is open in the editor and not saved; save or close it before it is deleted.")
        await self._disk.apply(FileChange(path, None, stored.base))

    async def _edit(self, path: Path, document: Document, text: str, *, confirm: bool) -> None:
        if document.text == text:
            return
        client = self._server.client
        if not client.has("workspace.applyEdit"):
            raise EditConflict(f"{path} is open in an editor that takes no edits; save and close it there first.")
        confirm = confirm and can_confirm(client)
        edit = workspace_edit(client, document, text, confirm=confirm)
        params = {"label": "Lyma", "edit": edit}
        try:
            async with asyncio.timeout(_PERSON_S if confirm else _EDITOR_S):
                answer = await self._server.protocol.send_request_async("workspace/applyEdit", params)
        except (JsonRpcException, TimeoutError) as problem:
            raise EditConflict(f"The editor did not take the edit of {path}; read it again.") from problem
        if not isinstance(answer, dict) or answer.get("applied") is not True:
            if confirm:
                raise ToolError(f"The person did not agree to this edit of {path}; ask what they want instead.")
            raise EditConflict(f"The editor refused the edit of {path}; read it again.")
        await self._verify(document, text)

    async def _verify(self, document: Document, text: str) -> None:
        """Wait until the editor shows what was sent. It may add a last line end of its own."""
        try:
            async with asyncio.timeout(_ECHO_S):
                while not same_lines(document.text, text):
                    await self._server.documents.wait_for_change()
        except TimeoutError:
            raise EditConflict(
                f"The editor took the edit of {document.uri} and shows another text; read it again.", applied=True
            ) from None


def find_root(folders: list[str], context: AskContext | None) -> Path | None:
    """The root of an ask: the one that the client names; else the innermost workspace folder that owns the active file;
    else the first folder. Without any folder, the active file's own.
    """
    if context is not None and context.root is not None:
        return Path(os.path.realpath(to_path(context.root)))
    known = [path for uri in folders if (path := real_path(uri)) is not None]
    active = real_path(context.active.uri) if context is not None and context.active is not None else None
    if active is not None:
        owners = [folder for folder in known if is_inside(active, folder)]
        if owners:
            return Path(max(owners, key=len))
        if not known:
            return Path(active).parent
    return Path(known[0]) if known else None
