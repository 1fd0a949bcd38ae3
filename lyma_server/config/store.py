"""How config.toml is written: whole or not at all, by one at a time, for its owner alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lyma_server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lyma_server.config.paths import Home


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """Create the home where there is none, and keep other editors of its configuration out meanwhile."""
    home.ensure()
    folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def replace(path: Path, text: str) -> None:
    """Put a file with mode 0600 in the place of `path`. Raises ConfigError, and then nothing has changed."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write(fresh, text.encode())
        fresh.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise ConfigError(f"{path} cannot be written ({error.strerror}); it is unchanged.", file=str(path)) from error


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
        os.fchmod(descriptor, 0o600)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
