"""Files on the disk: read and changed without following a link, compared before they are swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import FileChange, FileText


class DiskWorkspace:
    """The Workspace of a terminal, and an editor's for files that are not open. `root` null: there is none."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    @property
    def root(self) -> Path | None:
        return self._root

    def uri(self, path: Path) -> str:
        return path.as_uri()

    def path(self, uri: str) -> Path:
        """The absolute path of a `file:` URI. Raises UsageError for any other."""
        raise NotImplementedError

    async def read(self, path: Path) -> FileText:
        """Raises ToolError where it is missing, not a text, or too large."""
        raise NotImplementedError

    async def apply(self, change: FileChange) -> None:
        """Raises EditConflict where the file is not in the state `base`."""
        raise NotImplementedError
