"""Approvals on the disk: `approvals/<hex>.<workspace>.json`, and a tombstone `approvals/<hex>.revoked.json`.

Each read checks anew what it reads: a plain file of the user's own, mode 0600, with one name, not through a link.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from lyma_server.errors import ApprovalDenied
from lyma_server.factory.approval import Record, read_record, record_as_json
from lyma_server.factory.canonical import canonical, digest, parse_strictly
from lyma_server.factory.folder import Demands, Folder, Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEMANDS: Final = Demands(16 << 10, own=True, private=True)
_RECORD: Final = re.compile(r"([0-9a-f]{64})\.([0-9a-f]{64})\.json")
_TOMBSTONE: Final = re.compile(r"([0-9a-f]{64})\.revoked\.json")


class Records:
    """The folder `approvals` in Lyma's home. Raises ApprovalDenied for whatever there is not as it must be."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, hash_: str, workspace: str) -> Record | None:
        """The record for an agent in a workspace, null where there is none."""
        try:
            with self._opened() as folder:
                return _sound(folder.read(record_name(hash_, workspace), _DEMANDS))
        except Unfit as error:
            if error.code == "missing":
                return None
            raise _refusal(hash_, error) from error

    def is_revoked(self, hash_: str) -> bool:
        """Whether there is a tombstone, of whatever kind."""
        try:
            with self._opened() as folder:
                return tombstone_name(hash_) in folder.names()
        except Unfit as error:
            if error.code == "missing":
                return False
            raise _refusal(hash_, error) from error

    def write(self, record: Record) -> None:
        """Put a record in place, and then take away the tombstone, if there is one."""
        try:
            with self._opened(make=True) as folder, folder.locked():
                folder.replace(record_name(record.hash, record.workspace), canonical(record_as_json(record)), 0o600)
                folder.remove(tombstone_name(record.hash))
                folder.sync()
        except Unfit as error:
            raise _refusal(record.hash, error) from error

    def revoke(self, hash_: str, now: int) -> int:
        """Leave a tombstone, and then take away all records of an agent; returns how many there were."""
        try:
            with self._opened(make=True) as folder, folder.locked():
                folder.replace(tombstone_name(hash_), canonical({"hash": hash_, "revoked_at": now}), 0o600)
                records = [name for name in folder.names() if _RECORD.fullmatch(name) and name.startswith(_hex(hash_))]
                for name in records:
                    folder.remove(name)
                folder.sync()
        except Unfit as error:
            raise _refusal(hash_, error) from error
        return len(records)

    def all(self) -> tuple[Record, ...]:
        """The sound records, newest first; others are left out."""
        try:
            with self._opened() as folder:
                found = [self._readable(folder, name) for name in folder.names() if _RECORD.fullmatch(name)]
        except Unfit:
            return ()
        records = (record for record in found if record is not None)
        return tuple(sorted(records, key=lambda record: (-record.approved_at, record.hash)))

    def revoked(self) -> tuple[str, ...]:
        """The hashes that have a tombstone."""
        try:
            with self._opened() as folder:
                matches = (_TOMBSTONE.fullmatch(name) for name in folder.names())
                return tuple(f"sha256:{match[1]}" for match in matches if match)
        except Unfit:
            return ()

    def _readable(self, folder: Folder, name: str) -> Record | None:
        """A record that is sound and lies where it should."""
        try:
            record = _sound(folder.read(name, _DEMANDS))
        except Unfit:
            return None
        return record if record_name(record.hash, record.workspace) == name else None

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[Folder]:
        with Folder.open(self._root.parent) as home:
            home.check(private=True)
            with home.inside(self._root.name, make=0o700 if make else None) as folder:
                folder.check(private=True)
                yield folder


def record_name(hash_: str, workspace: str) -> str:
    """The name of the file for an agent in a workspace."""
    return f"{_hex(hash_)}.{digest(workspace.encode('utf-8', 'surrogateescape'))}.json"


def tombstone_name(hash_: str) -> str:
    """The name of the file that says that an agent was revoked."""
    return f"{_hex(hash_)}.revoked.json"


def _hex(hash_: str) -> str:
    return hash_.removeprefix("sha256:")


def _sound(content: bytes) -> Record:
    """Parse a record. Raises Unfit where it is none."""
    try:
        record = read_record(parse_strictly(content))
    except ValueError:
        record = None
    if record is None:
        raise Unfit("corrupt", "is no approval")
    return record


def _refusal(hash_: str, error: Unfit) -> ApprovalDenied:
    return ApprovalDenied(
        f"The approval of {hash_} cannot be trusted: a file or folder of it {error.problem}; run `lyma approve {hash_}`.",
        hash=hash_,
        detail=str(error),
    )
