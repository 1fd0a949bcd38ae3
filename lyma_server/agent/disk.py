"""Files on the disk: read and changed without following a link, compared before they are swapped."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from lyma_server.agent.encoding import decoded, encoded
from lyma_server.agent.files import Changed, Content, NotRegular, TooLarge, read_file, remove_file, replace_file
from lyma_server.agent.ports import FileMissing, FileText
from lyma_server.errors import EditConflict, ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.ports import FileChange

LARGEST_FILE = 8 << 20
"""Bytes. Larger files are neither read nor changed."""

Result = TypeVar("Result")


class DiskWorkspace:
    """The Workspace of a terminal, and an editor's for files that are not open. `root` null: there is none.

    Paths are absolute and real (without links): a link that is met on the way is refused.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = None if root is None else Path(root).resolve()

    @property
    def root(self) -> Path | None:
        return self._root

    def uri(self, path: Path) -> str:
        return path.as_uri()

    def path(self, uri: str) -> Path:
        """The absolute path of a `file:` URI. Raises UsageError for any other."""
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        here = parts.scheme == "file" and parts.netloc in {"", "localhost"}
        if not here or not path.is_absolute() or "\0" in str(path):
            raise UsageError(f"{uri[:200]} is not the address of a file on this machine; it must begin with file:///.")
        return path

    async def read(self, path: Path) -> FileText:
        """Raises FileMissing, or ToolError where it is not a text or is too large."""
        content = await finished(lambda: _read(path))
        text, encoding = _text(path, content)
        return FileText(path, text, content.base, encoding=encoding)

    def confirms(self, path: Path) -> bool:
        """The disk shows nobody anything."""
        del path
        return False

    async def apply(self, change: FileChange) -> None:
        """Raises EditConflict where the file is not in the state `base`, ToolError where it may not or cannot be changed."""
        if self._root is None or not change.path.is_relative_to(self._root):
            raise ToolError(f"{change.path} lies outside of the workspace, so it is not changed.")
        await finished(lambda: _apply(change))


async def finished(work: Callable[[], Result]) -> Result:
    """Do blocking work in a thread, and let it finish even where the caller is cancelled: half a write is no write."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # nobody is left to be told of it; asyncio would complain of that
        raise


def _read(path: Path) -> Content:
    try:
        return read_file(path, LARGEST_FILE)
    except FileNotFoundError as error:
        raise FileMissing(f"There is no file {path}.") from error
    except OSError as error:
        raise ToolError(_complaint(path, error)) from error


def _text(path: Path, content: Content) -> tuple[str, str]:
    found = decoded(content.data)
    if found is None:
        raise ToolError(f"{path} is not a text in UTF-8 or UTF-16, so it is neither shown nor changed.")
    return found


def _apply(change: FileChange) -> None:
    try:
        if change.text is None:
            remove_file(change.path, base=change.base or "", limit=LARGEST_FILE)
        else:
            data = _new_bytes(change.path, change.text, change.base)
            replace_file(change.path, data, base=change.base, limit=LARGEST_FILE)
    except (Changed, FileNotFoundError) as error:
        raise EditConflict(f"{change.path} has changed since it was read; read it again.") from error
    except OSError as error:
        raise ToolError(_complaint(change.path, error)) from error


def _new_bytes(path: Path, text: str, base: str | None) -> bytes:
    """The bytes of a file's new text, in the encoding that it has now."""
    _, encoding = ("", "utf-8") if base is None else _text(path, read_file(path, LARGEST_FILE))
    try:
        data = encoded(text, encoding)
    except UnicodeEncodeError as error:
        raise ToolError(f"The new text of {path} holds half of a character, so it is not written.") from error
    if len(data) > LARGEST_FILE:
        raise ToolError(f"The new text of {path} has {len(data)} bytes; at most {LARGEST_FILE} are written.")
    return data


def _complaint(path: Path, error: OSError) -> str:
    if isinstance(error, TooLarge):
        return f"{path} has more than {LARGEST_FILE >> 20} MiB, so it is not read."
    if isinstance(error, NotRegular):
        return f"{path} is not a regular file."
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return f"{path} leads through a link or a file, so it is not opened."
    return f"{path} cannot be opened: {error.strerror or error}."
