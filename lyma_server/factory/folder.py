"""An open folder, and the files in it: no link is ever followed, and every check is made on what is open, not on a path."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_OPENING: Final = {
    errno.ENOENT: ("missing", "is not there"),
    errno.ELOOP: ("symlink", "is a symbolic link"),
    errno.ENOTDIR: ("not_a_folder", "is no folder"),
    errno.EISDIR: ("not_regular", "is not a regular file"),
    errno.ENXIO: ("not_regular", "is not a regular file"),
}


class Unfit(Exception):
    """Something on the disk is not as it must be. `code` is one word, `problem` goes on from its name."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(f"{code}: {problem}")
        self.code = code
        self.problem = problem


@frozen
class Demands:
    """What a file must be beyond a regular one with a single name and at most `largest` bytes: the user's own, or also
    closed to everybody else.
    """

    largest: int
    own: bool = False
    private: bool = False


class Folder:
    """A folder that is open. Raises Unfit, also for whatever the system reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Folder]:
        """Open `path`, whose last name must not be a link."""
        with _reporting():
            folder = cls(os.open(path, _FOLDER))
        try:
            yield folder
        finally:
            folder.close()

    @contextmanager
    def inside(self, name: str, *, make: int | None = None) -> Iterator[Folder]:
        """Open the folder `name` in this one; with `make`, a mode, it is made where it is missing."""
        with _reporting():
            if make is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, make, dir_fd=self._descriptor)
            folder = Folder(os.open(name, _FOLDER, dir_fd=self._descriptor))
        try:
            yield folder
        finally:
            folder.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def check(self, *, private: bool) -> None:
        """Raise Unfit unless the folder is the user's own and, if `private`, closed to others, else to their changes."""
        _check_owner(os.fstat(self._descriptor), closed=0o077 if private else 0o022)

    def names(self) -> list[str]:
        """All names in it, sorted."""
        with _reporting():
            return sorted(os.listdir(self._descriptor))  # noqa: PTH208 - it is a descriptor, not a path

    def kind(self, name: str) -> str:
        """`folder`, `file` or `other`; a link is other."""
        with _reporting():
            mode = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def is_executable(self, name: str) -> bool:
        """Whether its owner may execute a file."""
        with _reporting():
            return bool(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode & stat.S_IXUSR)

    def link_target(self, name: str) -> str:
        """What a symbolic link holds. Code `not_regular` where it is none."""
        try:
            return os.readlink(name, dir_fd=self._descriptor)
        except OSError as error:
            raise Unfit("not_regular", "is neither a file, nor a folder, nor a link") from error

    def read(self, name: str, demands: Demands) -> bytes:
        """Read a whole file, once."""
        with _reporting():
            descriptor = os.open(name, _FILE, dir_fd=self._descriptor)
            try:
                return _read(descriptor, demands)
            finally:
                os.close(descriptor)

    def write_new(self, name: str, content: bytes, mode: int) -> None:
        """Write a file that is not there yet, and wait until it is on the disk. Code `exists` where it is."""
        with _reporting():
            descriptor = os.open(name, _NEW, 0o600, dir_fd=self._descriptor)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
                file.write(content)
                file.flush()
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)

    def replace(self, name: str, content: bytes, mode: int) -> None:
        """Put a file in the place of `name`, at once or not at all."""
        draft = f".{secrets.token_hex(8)}.new"
        try:
            self.write_new(draft, content, mode)
            self.rename(draft, name)
        finally:
            self.remove(draft)

    def rename(self, old: str, new: str) -> None:
        """Rename within the folder; a file in the way goes, a folder that holds something does not (code `exists`)."""
        with _reporting():
            os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            self.sync()

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with _reporting(), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a folder and the files in it; it holds no deeper ones than `inside` makes."""
        with self.inside(name) as folder:
            folder.set_mode(0o700)
            for each in folder.names():
                if folder.kind(each) == "folder":
                    folder.remove_tree(each)
                else:
                    folder.remove(each)
        with _reporting():
            os.rmdir(name, dir_fd=self._descriptor)

    def set_mode(self, mode: int) -> None:
        """Set the folder's own mode."""
        os.fchmod(self._descriptor, mode)

    def sync(self) -> None:
        """Wait until its names are on the disk."""
        os.fsync(self._descriptor)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out meanwhile, in this process and in others."""
        descriptor = os.open(".", _FOLDER, dir_fd=self._descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def in_use(self, name: str, *, alone: bool = False) -> Iterator[None]:
        """Hold the folder `name`, with others or `alone`, in this process and in others. Code `in_use` where that cannot be."""
        with _reporting():
            descriptor = os.open(name, _FOLDER, dir_fd=self._descriptor)
        try:
            try:
                fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Unfit("in_use", "is in use") from error
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def appending(self, name: str, demands: Demands) -> Iterator[int]:
        """A descriptor that reads anywhere and writes at the end; the file is made, for its owner alone, if missing."""
        with _reporting():
            descriptor = os.open(name, _APPEND, 0o600, dir_fd=self._descriptor)
        try:
            _check_file(os.fstat(descriptor), demands)
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _reporting() -> Iterator[None]:
    """Turn what the system reports into Unfit."""
    try:
        yield
    except FileExistsError:
        raise Unfit("exists", "is there already") from None
    except OSError as error:
        code, problem = _OPENING.get(error.errno or 0, ("unreadable", f"cannot be used ({error.strerror})"))
        if error.errno == errno.ENOTEMPTY:
            code, problem = "exists", "is there already"
        raise Unfit(code, problem) from error


def _read(descriptor: int, demands: Demands) -> bytes:
    before = os.fstat(descriptor)
    _check_file(before, demands)
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read(demands.largest + 1)
    after = os.fstat(descriptor)
    if len(content) != before.st_size or _state(before) != _state(after):
        raise Unfit("changed", "changed while it was read")
    return content


def _state(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _check_file(facts: os.stat_result, demands: Demands) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise Unfit("not_regular", "is not a regular file")
    if facts.st_nlink != 1:
        raise Unfit("hard_link", "has a second name (a hard link)")
    if facts.st_size > demands.largest:
        raise Unfit("too_large", f"has more than {demands.largest} bytes")
    if demands.own or demands.private:
        _check_owner(facts, closed=0o077 if demands.private else 0o022)


def _check_owner(facts: os.stat_result, *, closed: int) -> None:
    if facts.st_uid != os.geteuid():
        raise Unfit("foreign", "belongs to another user")
    if stat.S_IMODE(facts.st_mode) & closed:
        raise Unfit(
            "open_to_others", "can be read or changed by others" if closed == 0o077 else "can be changed by others"
        )
