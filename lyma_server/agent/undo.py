"""Undoes what a turn changed, byte for byte.

What a file held is kept once for each content. A file that is in none of the states that the turn gave it was changed by
somebody since, and is left alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from lyma_server.agent.bounds import real_path
from lyma_server.agent.files import Content, read_file, remove_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lyma_server.agent.record import EditRecord

LARGEST_FILE = 16 << 20
"""Bytes; twice what the file tools write, since UTF-16 takes twice as much."""

CHANGED_SINCE = "It was changed since."


class UndoFolder:
    """A folder of contents named by their SHA-256, 0700 with files of 0600. Created when the first is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: bytes | None) -> str | None:
        """Keep `content` and return its name. Raises OSError."""
        if content is None:
            return None
        name = hashlib.sha256(content).hexdigest()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return name
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            (self.folder / name).unlink(missing_ok=True)
            raise
        return name

    def content(self, name: str) -> bytes:
        """What was kept under `name`. Raises OSError, or ValueError where it is not what its name says."""
        content = (self.folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            raise ValueError(f"{self.folder / name} is damaged")
        return content


@frozen
class Undone:
    """What became of one file: `restored`, `removed` (the turn had made it), `unchanged` (it was as before), or `kept`
    for the `reason`.
    """

    path: Path
    outcome: Literal["restored", "removed", "unchanged", "kept"]
    reason: str = ""


def by_file(edits: Iterable[EditRecord]) -> dict[Path, tuple[EditRecord, ...]]:
    """The edits of each file, the first file and the first edit first."""
    found: dict[Path, tuple[EditRecord, ...]] = {}
    for edit in edits:
        path = Path(edit.path)
        found[path] = (*found.get(path, ()), edit)
    return found


def undo_edits(edits: Iterable[EditRecord], undo: UndoFolder) -> tuple[Undone, ...]:
    """Put every file of one turn's edits back, as far as nobody changed it since. Blocks; raises nothing."""
    return tuple(undo_file(path, records, undo) for path, records in by_file(edits).items())


def undo_file(path: Path, records: Sequence[EditRecord], undo: UndoFolder, *, rehearse: bool = False) -> Undone:
    """Put one file back on the disk, or with `rehearse` only say what would become of it. Blocks; raises nothing."""
    first = records[0]
    try:
        now = _current(path)
        mode = _lost_mode(now, records)
        found = judged(path, records, None if now is None else hashlib.sha256(now.data).hexdigest())
        if found.outcome == "unchanged" and now is not None and mode is not None:
            found = Undone(path, "restored")
        if found.outcome in {"restored", "removed"}:
            content = None if first.before is None else undo.content(first.before)
            if not rehearse:
                _put_back(path, now, content, mode)
    except (OSError, ValueError) as error:
        return Undone(path, "kept", f"It cannot be put back: {getattr(error, 'strerror', None) or error}.")
    return found


def judged(path: Path, records: Sequence[EditRecord], state: str | None) -> Undone:
    """What is to become of a file whose bytes have the SHA-256 `state`; null: there is none. Pure."""
    before = records[0].before
    if state == before:
        return Undone(path, "unchanged")
    if state not in {record.after for record in records}:
        return Undone(path, "kept", CHANGED_SINCE)
    return Undone(path, "removed" if before is None else "restored")


def _lost_mode(now: Content | None, records: Sequence[EditRecord]) -> int | None:
    """The mode from before the turn, where a deletion took it; a file that was never deleted kept its own."""
    mode = records[0].mode
    was_deleted = any(record.after is None for record in records)
    return mode if was_deleted and (now is None or now.mode != mode) else None


def _current(path: Path) -> Content | None:
    """The file as it is. Raises OSError where a part of its path has become a link."""
    if real_path(path) != path:
        raise OSError(0, "a part of its path has become a link")
    try:
        return read_file(path, LARGEST_FILE)
    except FileNotFoundError:
        return None


def _put_back(path: Path, now: Content | None, content: bytes | None, mode: int | None) -> None:
    base = now.base if now else None
    if content is None:
        remove_file(path, base=base or "", limit=LARGEST_FILE)
    else:
        replace_file(path, content, base=base, limit=LARGEST_FILE, mode=mode)
