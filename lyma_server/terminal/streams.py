"""The three standard streams, which whoever starts us may have closed, filled or broken."""

from __future__ import annotations

import errno
import os
import sys

LOST = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Why nothing more can be written: a full disk, a terminal that is gone, a descriptor that was closed."""


def hold_streams() -> None:
    """Open what is closed of descriptors 0, 1 and 2, so that no file of ours is ever taken for one of them.

    Stdin becomes empty and what would be said on stderr goes nowhere. Stdout is opened for reading, so that writing to it
    fails, as it should, instead of seeming to work.
    """
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def complaint(error: Exception) -> str | None:
    """The sentence for what is no fault of ours: output that nothing takes, a folder that is gone. Else null.

    An error about a file names it, so it is neither.
    """
    if not isinstance(error, OSError) or error.filename is not None:
        return None
    if error.errno == errno.ENOENT:
        return "The folder that you are in is gone; go to one that is there."
    return f"The output cannot be written: {error.strerror}." if error.errno in LOST else None


def forget_stdout() -> None:
    """Nobody reads any more: keep the interpreter from complaining when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def forget_stderr() -> None:
    """The same for what is said beside the answer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
