"""Copies what an agent may read to a private place, which its sandbox then sees as `/in`.

No link is followed, nothing protected is taken, and what changes while it is read is left out.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from lyma_server.factory.budget import Exhausted
from lyma_server.factory.canonical import digest
from lyma_server.factory.folder import Demands, Folder, Unfit
from lyma_server.factory.globs import is_allowed, may_hold
from lyma_server.factory.protected import is_protected
from lyma_server.isolation.heir import Heir

if TYPE_CHECKING:
    import threading

    from lyma_server.factory.budget import Amount

DEEPEST: Final = 64
"""Folders inside folders; deeper ones are left out."""

FOR_ROOT: Final = Path("/var/tmp")  # noqa: S108 - a random name, and a lock
_PLACE: Final = ".staging"
_PREFIX: Final = "lyma-staging-"


@frozen
class Reach:
    """What may be read, or written: a file must fit one glob of each list, first those of the run itself."""

    read: tuple[tuple[str, ...], ...]
    write: tuple[tuple[str, ...], ...]

    def may_read(self, path: str) -> bool:
        return all(is_allowed(path, globs, writing=False) for globs in self.read)

    def may_write(self, path: str) -> bool:
        return all(is_allowed(path, globs, writing=True) for globs in self.write)

    def may_hold(self, folder: str) -> bool:
        """Whether a folder may hold something that may be read."""
        return not is_protected(folder, writing=False) and all(may_hold(folder, globs) for globs in self.read)

    def below(self, other: Reach) -> Reach:
        """The reach of a run that `other` bounds, too."""
        return Reach((*self.read, *other.read), (*self.write, *other.write))


class Abandoned(Exception):
    """The run was given up while its files were being copied."""


@frozen
class Staged:
    """`place` holds the copies; `digests` are their SHA-256 by relative path; `left_out` says why others are not there.
    `tree` holds the program of an agent that brings its own.
    """

    place: Path
    digests: dict[str, str]
    size: int
    left_out: tuple[str, ...] = ()
    tree: Path | None = None


@define
class Copying:
    """A copy under way. Raises Exhausted beyond `most`, whose path is `path`, and Abandoned when `given_up` is set."""

    reach: Reach
    most: Amount
    path: tuple[str, ...]
    given_up: threading.Event
    digests: dict[str, str] = field(factory=dict)
    size: int = 0
    left_out: list[str] = field(factory=list)

    def copy(self, source: Folder, target: Path, prefix: str = "", depth: int = 0) -> None:
        """Copy what may be read in one folder, and in those inside it."""
        for name in source.names():
            if self.given_up.is_set():
                raise Abandoned
            path = f"{prefix}{name}"
            try:
                self._copy_one(source, target, path, name, depth)
            except Unfit as error:
                if error.code == "too_large":
                    raise Exhausted("bytes_read", self.path) from error
                self.left_out.append(f"{path} {error.problem}")

    def _copy_one(self, source: Folder, target: Path, path: str, name: str, depth: int) -> None:
        kind = source.kind(name)
        if kind == "folder" and depth < DEEPEST and self.reach.may_hold(path):
            with source.inside(name) as inner:
                self.copy(inner, target / name, f"{path}/", depth + 1)
        elif kind == "file" and self.reach.may_read(path):
            self._take(path, source.read(name, Demands(self.most.bytes_read + 1)), target / name)
        elif kind == "other" and self.reach.may_read(path):
            self.left_out.append(f"{path} is a link or no regular file")

    def _take(self, path: str, content: bytes, target: Path) -> None:
        if len(self.digests) >= self.most.files_read:
            raise Exhausted("files_read", self.path)
        if self.size + len(content) > self.most.bytes_read:
            raise Exhausted("bytes_read", self.path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
            file.write(content)
            os.fchmod(descriptor, 0o444)
        self.digests[path] = digest(content)
        self.size += len(content)


def copy_files(workspace: Path, place: Path, copying: Copying) -> Staged:
    """Copy to the empty folder `place`. Raises Unfit where the workspace itself cannot be read."""
    if any(copying.reach.read):
        with Folder.open(workspace.resolve()) as root:
            copying.copy(root, place)
    open_to_readers(place)
    return Staged(place, copying.digests, copying.size, tuple(copying.left_out))


def open_to_readers(place: Path) -> None:
    """Whoever the agent runs as can read, whatever the umask; `place` itself lets in whom the sandbox lets in."""
    for folder, inner, _ in os.walk(place):
        for name in inner:
            if os.path.islink(os.path.join(folder, name)):  # noqa: PTH114, PTH118 - a link to a folder, of a tree
                continue
            os.chmod(os.path.join(folder, name), 0o755)  # noqa: PTH101, PTH118, S103 - readable by all, inside a private folder


@define
class PrivatePlace:
    """An empty folder `inside` for one run, below the folder of all runs. It must be removed."""

    _folder: Path
    _lock: int | None
    _heir: Heir

    @classmethod
    def make(cls, runs: Path) -> PrivatePlace:
        """Make one, which goes when we are killed, too. What was left behind all the same goes first.

        Root's agents run as users who may enter nothing of root's, so their files lie elsewhere; the sandbox gives `inside`
        to the one user.
        """
        above = FOR_ROOT if os.geteuid() == 0 else runs / _PLACE
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(above)
        token = secrets.token_hex(16)
        draft, folder = above / f".{_PREFIX}{token}", above / f"{_PREFIX}{token}"
        heir = Heir.of((draft, folder))
        try:
            draft.mkdir(mode=0o700)
            made = cls(folder, _locked(draft), heir)
            (draft / "in").mkdir(mode=0o700)
            draft.chmod(0o711)
            draft.rename(folder)  # under this name it is swept where nobody holds its lock
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            heir.dismiss()
            raise
        return made

    @property
    def inside(self) -> Path:
        return self._folder / "in"

    @property
    def tree(self) -> Path:
        """Where a program of the agent's own may be laid out; it is not there yet."""
        return self._folder / "tree"

    def remove(self) -> None:
        """Remove it with all that is in it. Idempotent."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._heir.dismiss()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _sweep(above: Path) -> None:
    """Remove our folders that nobody holds any more."""
    for each in above.glob(f"{_PREFIX}*"):
        descriptor = _locked(each)
        if descriptor is not None:
            if os.fstat(descriptor).st_uid == os.geteuid():
                shutil.rmtree(each, ignore_errors=True)
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """An open descriptor that holds the lock of a folder; null where another has it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None
