"""Reads files that anybody may have put where they are: a pipe lets its reader wait for ever, and a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_regular(path: Path, limit: int) -> bytes:
    """The first `limit` bytes of the regular file at `path`, links followed. Raises OSError, for whatever else is there too."""
    descriptor = os.open(path, _FLAGS)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it is a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(limit)
