"""What the machine does to a command: a full disk, a file that is not ours. No fault of Lyma's, so no incident but a sentence."""

from __future__ import annotations

import errno
import os
from typing import Final

from lyma_server.terminal.plain import plain_line

REMEDIES: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EROFS: "use a place that can be written",
    errno.EACCES: "give yourself the right to it",
    errno.EPERM: "give yourself the right to it",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs",
    errno.EIO: "look after the disk",
    errno.ENAMETOOLONG: "give a shorter name",
}


def mishap(error: Exception) -> str | None:
    """The sentence for what befell a file; null where it may be a fault of ours."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes):
        return None
    remedy = REMEDIES.get(error.errno or 0)
    reason = (error.strerror or "it failed").lower()
    return f"{plain_line(os.fsdecode(error.filename))}: {reason}; {remedy}." if remedy else None
