"""The log of who approved, revoked and ran what: append-only, each line bound to the one before it, on the disk at once.

It shows that a line before the last was changed, inserted or taken out. It cannot show that the last one was changed or the
end cut off, nor hold against someone who may write Lyma's home and makes the whole chain anew.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.errors import LymaError
from lyma_server.factory.canonical import canonical, hash_of, parse_strictly
from lyma_server.factory.folder import Demands, Folder, Unfit

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.protocol.base import Json

_LONGEST_LINE: Final = 64 << 10
_LARGEST: Final = 1 << 30
"""Bytes."""

FIRST: Final = "sha256:" + "0" * 64
"""What the first line is bound to."""

_DEMANDS: Final = Demands(_LARGEST, own=True, private=True)


@frozen
class Break:
    """Where the chain does not hold: the number of the line, from 1."""

    line: int
    problem: str


class Audit:
    """`audit.jsonl` in Lyma's home."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, event: str, now: int, **facts: Json) -> None:
        """Write one line and wait until it is on the disk. Raises LymaError where it cannot: then nothing must happen."""
        try:
            with (
                Folder.open(self._path.parent) as home,
                home.locked(),
                home.appending(self._path.name, _DEMANDS) as file,
            ):
                last, whole = _last_line(file)
                line = canonical({"event": event, "time": now, "previous": hash_of(last) if last else FIRST, **facts})
                _write(file, (b"" if whole else b"\n") + line + b"\n")
        except (Unfit, OSError) as error:
            problem = error.problem if isinstance(error, Unfit) else f"cannot be written ({error.strerror})"
            raise LymaError(f"{self._path} {problem}, so nothing was done; mend it first.") from error

    def entries(self) -> tuple[dict[str, Any], ...]:
        """What the sound lines say, in order."""
        found = (_parsed(line) for line in self._lines())
        return tuple(entry for entry in found if entry is not None)

    def verify(self) -> Break | None:
        """Walk the whole chain; null where it holds."""
        previous = FIRST
        for number, line in enumerate(self._lines(), 1):
            entry = _parsed(line)
            if entry is None:
                return Break(number, "is not as it was written")
            if entry.get("previous") != previous:
                return Break(number, "does not follow the line before it")
            previous = hash_of(line)
        return None

    def _lines(self) -> list[bytes]:
        try:
            with Folder.open(self._path.parent) as home:
                content = home.read(self._path.name, _DEMANDS)
        except Unfit as error:
            if error.code == "missing":
                return []
            raise LymaError(f"{self._path} {error.problem}; mend it first.") from error
        return content.removesuffix(b"\n").split(b"\n") if content else []


def _write(file: int, content: bytes) -> None:
    if os.write(file, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = parse_strictly(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and canonical(entry) == line else None


def _last_line(file: int) -> tuple[bytes, bool]:
    """The last line, and whether it is ended: after a crash it may not be."""
    size = os.fstat(file).st_size
    tail = os.pread(file, _LONGEST_LINE, max(0, size - _LONGEST_LINE))
    whole = not tail or tail.endswith(b"\n")
    return tail.removesuffix(b"\n").rpartition(b"\n")[2], whole
