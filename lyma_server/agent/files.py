"""Files opened and replaced without ever following a link.

A path is judged first and opened later; in between, a part of it may be swapped for a link. So each folder on the way is
opened from the one above it with O_NOFOLLOW, and what is changed is changed inside that folder. All functions block and
raise OSError; a link on the way is ELOOP or ENOTDIR.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# With O_PATH, a folder that may be entered but not listed is no obstacle (a home of mode 0711 on the way).
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE_MODE = 0o666
NEW_FOLDER_MODE = 0o777


class NotRegular(OSError):
    """It is a folder, a device, a pipe or a socket."""


class TooLarge(OSError):
    """It has more bytes than were asked for at most."""


class Changed(OSError):
    """It is not in the state in which it was read."""


@frozen
class Content:
    """The bytes of a file, with what must be kept of it."""

    data: bytes
    mode: int
    owner: tuple[int, int]

    @property
    def base(self) -> str:
        """Names exactly these bytes."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def read_file(path: Path, limit: int) -> Content:
    """The regular file at the absolute `path`, of at most `limit` bytes. Raises NotRegular, TooLarge."""
    with _folder(path) as folder:
        return _content(path.name, folder, limit)


def replace_file(path: Path, data: bytes, *, base: str | None, limit: int, mode: int | None = None) -> None:
    """Put `data` in place of the state `base` (null: no file), at once or not at all; owner and mode stay, but for a `mode`
    that is given. Folders on the way are made. Raises Changed.
    """
    with _folder(path, create=base is None) as folder:
        before = _expected(path.name, folder, base, limit)
        draft = f".{path.name[:100]}.{secrets.token_hex(8)}"
        try:
            _write_draft(draft, folder, data, before, mode)
            _expected(path.name, folder, base, limit)
            _put(draft, path.name, folder, replacing=before is not None)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)


def remove_file(path: Path, *, base: str, limit: int) -> None:
    """Remove the file that is in the state `base`. Raises Changed."""
    with _folder(path) as folder:
        _expected(path.name, folder, base, limit)
        os.unlink(path.name, dir_fd=folder)


@contextmanager
def _folder(path: Path, *, create: bool = False) -> Iterator[int]:
    """The open folder that holds `path`."""
    folder = os.open(path.anchor, FOLDER)
    try:
        for part in path.parts[1:-1]:
            inner = _enter(part, folder, create=create)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _enter(part: str, folder: int, *, create: bool) -> int:
    try:
        return os.open(part, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(part, NEW_FOLDER_MODE, dir_fd=folder)
    return os.open(part, FOLDER, dir_fd=folder)


def _content(name: str, folder: int, limit: int) -> Content:
    descriptor = os.open(name, FILE, dir_fd=folder)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise NotRegular(name)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(name)
    return Content(data, stat.S_IMODE(facts.st_mode), (facts.st_uid, facts.st_gid))


def _expected(name: str, folder: int, base: str | None, limit: int) -> Content | None:
    """The file as it is now, which must be in the state `base`."""
    try:
        content = _content(name, folder, limit)
    except FileNotFoundError:
        content = None
    except TooLarge as error:
        raise Changed(name) from error
    if (content and content.base) != base:
        raise Changed(name)
    return content


def _write_draft(draft: str, folder: int, data: bytes, before: Content | None, mode: int | None) -> None:
    descriptor = os.open(draft, NEW_FILE, NEW_FILE_MODE if before is None else 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if before is not None:
            _keep_owner_and_mode(descriptor, before)
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _keep_owner_and_mode(descriptor: int, before: Content) -> None:
    """The mode last: changing the owner clears its special bits."""
    facts = os.fstat(descriptor)
    if (facts.st_uid, facts.st_gid) != before.owner:
        with suppress(PermissionError):
            os.fchown(descriptor, *before.owner)
    os.fchmod(descriptor, before.mode)


def _put(draft: str, name: str, folder: int, *, replacing: bool) -> None:
    """A new file is linked into place, since a rename would replace one that appeared meanwhile."""
    if replacing:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise Changed(name) from error
    except OSError:  # a file system without hard links
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
