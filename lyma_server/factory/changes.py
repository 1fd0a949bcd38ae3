"""Files that come back from a run as bytes: each is held to the globs, the limits and what it was made from. None is applied."""

from __future__ import annotations

import base64
import binascii
from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from lyma_server.errors import EditConflict
from lyma_server.factory.budget import Amount
from lyma_server.factory.canonical import digest
from lyma_server.factory.folder import Demands, Folder, Unfit
from lyma_server.factory.outcome import Change
from lyma_server.factory.protected import folded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lyma_server.factory.budget import Budget
    from lyma_server.factory.staging import Reach

LONGEST_PATH = 1024
"""Characters."""
MOST_FILES = 2000
LARGEST_OLD = 64 << 20
"""Bytes of a file that may be replaced."""


class Forbidden(Exception):
    """A run sent what it may not change; the message says what. It ends for that."""


@frozen
class Came:
    """A whole file that came back, with what it replaces (null for a new file)."""

    change: Change
    old: bytes | None


@define
class Returning:
    """What one run has sent so far. `claims` are shared by all runs of a root: paths, and the run that changes each."""

    run_id: str
    workspace: Path
    reach: Reach
    staged: Mapping[str, str]
    budget: Budget
    claims: dict[str, str]
    came: dict[str, Came] = field(factory=dict)
    _pieces: dict[str, bytearray] = field(factory=dict)
    _charged: dict[str, int] = field(factory=dict)
    _places: dict[str, tuple[str, bool]] = field(factory=dict)

    def put(self, path: str, encoded: str, *, more: bool) -> None:
        """Take a piece of a file. Raises Forbidden, EditConflict where it is not what the run saw, and Exhausted."""
        if not self._pieces.get(path):
            self._check(path)
        try:
            piece = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise Forbidden(f"what it sent for {path!r} is no base64") from None
        content = self._pieces.setdefault(path, bytearray())
        self._charge(path, len(content) + len(piece))
        content += piece
        if not more:
            del self._pieces[path]
            self._finish(path, bytes(content))

    def is_whole(self) -> bool:
        """Whether no file is only half there."""
        return not self._pieces

    def drop(self) -> None:
        """Forget everything, and let other runs change these files."""
        for path in [path for path, owner in self.claims.items() if owner == self.run_id]:
            del self.claims[path]
        self.came.clear()
        self._pieces.clear()

    def _check(self, path: str) -> None:
        if len(path) > LONGEST_PATH or not self.reach.may_write(path):
            raise Forbidden(f"it may not write {path[:200]!r}")
        if len(self.came) + len(self._pieces) >= MOST_FILES and path not in self.came:
            raise Forbidden(f"it changes more than {MOST_FILES} files")
        self._refuse_clash(path)
        if self.claims.setdefault(path, self.run_id) != self.run_id:
            raise EditConflict(f"{path} is changed by another run of the same task; one of them must leave it alone.")

    def _refuse_clash(self, path: str) -> None:
        """Two names that some disks take for one, or one that would be a file and a folder."""
        names = path.split("/")
        for depth in range(1, len(names) + 1):
            place = ("/".join(names[:depth]), depth == len(names))
            other = self._places.setdefault("/".join(map(folded, names[:depth])), place)
            if other != place:
                raise Forbidden(f"{path!r} cannot be beside {other[0]!r}, which it writes too")

    def _charge(self, path: str, size: int) -> None:
        more = size - self._charged.get(path, 0)
        if more > 0:
            self.budget.spend(Amount(bytes_written=more))
            self._charged[path] = size

    def _finish(self, path: str, content: bytes) -> None:
        old = read_plainly(self.workspace, path)
        base = None if old is None else digest(old)
        if path in self.staged and self.staged[path] != base:
            raise EditConflict(f"{path} changed while the agent worked on it; run it again.")
        if content == old:
            self.came.pop(path, None)
        else:
            self.came[path] = Came(Change(path, base, content), old)


def read_plainly(workspace: Path, path: str) -> bytes | None:
    """The bytes of a file, null where there is none. Raises Forbidden where a link or anything else odd is on its way."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(Folder.open(workspace.resolve()))
            for each in folders:
                _refuse_twin(folder, each, path)
                folder = stack.enter_context(folder.inside(each))
            _refuse_twin(folder, name, path)
            return folder.read(name, Demands(LARGEST_OLD))
        except Unfit as error:
            if error.code == "missing":
                return None
            raise Forbidden(f"{path!r} cannot be replaced: something on its way {error.problem}") from None


def _refuse_twin(folder: Folder, name: str, path: str) -> None:
    """A name that differs in letter case only is the same file on some disks."""
    if any(each != name and each.casefold() == name.casefold() for each in folder.names()):
        raise Forbidden(f"{path!r} differs from a file that is there in letter case only")
