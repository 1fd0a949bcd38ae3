"""Files that go along with a prompt: `--file PATH[:A-B]`, and `@path[:A-B]` in the prompt itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.agent.mentions import mentions
from lyma_server.errors import UsageError
from lyma_server.protocol.messages import FileBlock, TextBlock
from lyma_server.terminal.plain import plain_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lyma_server.agent.mentions import Mention
    from lyma_server.protocol.messages import Block

LINES = re.compile(r"(?P<path>.+):(?P<first>\d+)(?:-(?P<last>\d+))?", re.DOTALL)


def named_file(reference: str, folder: Path) -> FileBlock:
    """The file that the user named. Raises UsageError where it is not there or its lines make no sense."""
    block = _find(reference, folder)
    if block is not None:
        return block
    shown = plain_line(reference)
    if _real(reference, folder, Path.is_dir):
        raise UsageError(f"{shown} is a folder; name the files in it that should go along.")
    raise UsageError(f"There is no file {shown}; paths are taken from {folder}.")


def content_of(typed: str, piped: str, named: Iterable[FileBlock], folder: Path) -> str | tuple[Block, ...]:
    """The prompt as it goes to the agent, which finds `@path` in a plain string by itself.

    Blocks are sent where something else goes along; then `@path` is looked for here, and only in what was typed: what
    comes through a pipe may be anybody's, and must not make Lyma send files.
    """
    files = tuple(named)
    if not files and not piped.strip():
        return typed
    files += tuple(filter(None, (_mentioned(mention, folder) for mention in mentions(typed))))
    texts = tuple(TextBlock(text=text) for text in (typed, piped) if text.strip())
    return (*texts, *dict.fromkeys(files))


def _mentioned(mention: Mention, folder: Path) -> FileBlock | None:
    path = _real(mention.path, folder, Path.is_file)
    if path is None:
        return None
    return FileBlock(uri=path.as_uri(), first_line=mention.first_line, last_line=mention.last_line)


def _find(reference: str, folder: Path) -> FileBlock | None:
    whole = _real(reference, folder, Path.is_file)
    if whole is not None:
        return FileBlock(uri=whole.as_uri())
    match = LINES.fullmatch(reference)
    path = _real(match["path"], folder, Path.is_file) if match else None
    if match is None or path is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if not 1 <= first <= last:
        raise UsageError(f"{reference} asks for lines {first} to {last}; lines count from 1, the first comes first.")
    return FileBlock(uri=path.as_uri(), first_line=first, last_line=last)


def _real(name: str, folder: Path, is_kind: Callable[[Path], bool]) -> Path | None:
    """The real path of what the user named, links followed, if it is of that kind."""
    if "\0" in name:
        return None
    try:
        path = (folder / Path(name).expanduser()).resolve()
        return path if is_kind(path) else None
    except (OSError, RuntimeError):
        return None
