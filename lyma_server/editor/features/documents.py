"""The documents that are open in the editor: what it shows beats what is on the disk."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Final

from lyma_server.editor.features.uris import real_path

_COMPARED_LIMIT: Final = 16 << 20
_MARK: Final = "\ufeff"


class Document:
    """An open document. `dirty`: the editor shows something that was never on the disk."""

    def __init__(self, uri: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = real_path(uri)
        self.version = version
        self.text = text
        self.dirty = self.path is None or not _is_on_disk(self.path, text)

    @property
    def base(self) -> str:
        """Names exactly this state."""
        digest = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"buffer:{self.version}:{digest}"


class Documents:
    """The open documents, by URI as the client writes it and by real path."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Document] = {}
        self._by_path: dict[str, Document] = {}
        self._changed: asyncio.Event | None = None

    def open(self, uri: str, version: int, text: str) -> None:
        """The editor shows a document."""
        document = Document(uri, version, text)
        self._by_uri[uri] = document
        if document.path is not None:
            self._by_path[document.path] = document
        self._announce()

    def change(self, uri: str, version: int, text: str) -> None:
        """The document has a new text. One that was never opened is opened."""
        document = self.find(uri)
        if document is None:
            self.open(uri, version, text)
            return
        document.version = version
        document.dirty = document.dirty or text != document.text
        document.text = text
        self._announce()

    def save(self, uri: str) -> None:
        """The document is on the disk as it is shown."""
        if (document := self.find(uri)) is not None:
            document.dirty = False

    def close(self, uri: str) -> None:
        """The editor shows the document no longer."""
        document = self.find(uri)
        if document is not None:
            self._by_uri.pop(document.uri, None)
            if document.path is not None and self._by_path.get(document.path) is document:
                del self._by_path[document.path]
                self._by_path.update({each.path: each for each in self._by_uri.values() if each.path == document.path})
        self._announce()

    def find(self, uri: str) -> Document | None:
        """The open document with this URI, however it is written."""
        found = self._by_uri.get(uri)
        if found is None and (path := real_path(uri)) is not None:
            found = self._by_path.get(path)
        return found

    def at(self, path: Path) -> Document | None:
        """The open document of a file."""
        return self._by_path.get(os.path.realpath(path))

    def versions(self) -> dict[str, int]:
        """URI and version of each open document."""
        return {uri: document.version for uri, document in self._by_uri.items()}

    async def wait_for_change(self) -> None:
        """Wait until any document is opened, changed or closed."""
        if self._changed is None:
            self._changed = asyncio.Event()
        await self._changed.wait()

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def _is_on_disk(path: str, text: str) -> bool:
    """Whether the file holds `text`, line ends and a byte order mark aside: editors show neither as they are."""
    from lyma_server.agent.encoding import decoded
    from lyma_server.agent.lines import same_lines
    from lyma_server.isolation.regular import read_regular

    try:
        file = Path(path)
        if file.stat().st_size > _COMPARED_LIMIT:
            return True
        found = decoded(read_regular(file, _COMPARED_LIMIT))
    except OSError:
        return False
    return found is not None and same_lines(found[0], text.removeprefix(_MARK))
