"""The private folder of the embedded model's socket. It is locked by who made it, so that one left behind is known.

A process that is killed cannot tidy up, and its model may be killed while it still loads; whoever makes a folder next
removes those that nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from lyma_server.errors import ProviderError

PREFIX: Final = "lyma-llama-"
SOCKET: Final = "llama.sock"
PATH_LIMIT: Final = 90
"""Bytes; the kernel takes 107 at most."""

TRIES: Final = 10
"""Somebody who tidies up may come between the making and the locking."""


class SocketFolder:
    """A new folder that only we may enter (0700), with a path short enough for a socket."""

    def __init__(self) -> None:
        """Make and lock it, and remove what others have left behind. Raises ProviderError where it cannot be made."""
        try:
            base = _base()
            _remove_abandoned(base)
            self.path, self._descriptor = _new_folder(base)
        except OSError as error:
            raise ProviderError(
                f"The embedded model cannot start: there is no place for temporary files ({error.strerror}); make room, "
                "or set TMPDIR to a folder that can be written."
            ) from error

    @property
    def socket(self) -> Path:
        """Where the socket is to be."""
        return self.path / SOCKET

    def remove(self) -> None:
        """Remove it with its socket; any number of times."""
        shutil.rmtree(self.path, ignore_errors=True)
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _base() -> Path:
    usual = tempfile.gettempdir()
    fits = len(os.fsencode(usual)) < PATH_LIMIT - len(f"/{PREFIX}12345678/{SOCKET}")
    return Path(usual if fits else "/tmp")  # noqa: S108 - mkdtemp makes the folder in it private


def _new_folder(base: Path) -> tuple[Path, int | None]:
    """The folder and its lock; null where this file system has none, and so nobody can take it for abandoned."""
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        if (descriptor := _locked(path)) is not None:
            return path, descriptor
        with suppress(OSError):
            path.rmdir()
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base)), None


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock of a folder of our own; null where somebody else holds it or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(descriptor)
    except OSError:
        os.close(descriptor)
        return None
    if facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) == 0o700 and facts.st_nlink:
        return descriptor
    os.close(descriptor)
    return None


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{PREFIX}*"):
        descriptor = _locked(folder)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
