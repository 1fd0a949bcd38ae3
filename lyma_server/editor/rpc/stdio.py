"""Keep the protocol stream to ourselves."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Stdio(NamedTuple):
    """Descriptors that only this process holds: children do not inherit them and `print` does not know them.

    `parent` is the process that started this one, as it was before anything slow: it may be gone by the time it is watched.
    """

    reader: int
    writer: int
    parent: int


def claim_stdio() -> Stdio:
    """Take descriptors 0 and 1 away from everybody else: 0 becomes empty and 1 goes where the log goes.

    Raises OSError where 0 or 1 is closed.
    """
    sys.stdout.flush()
    stdio = Stdio(reader=os.dup(0), writer=os.dup(1), parent=os.getppid())
    _point(0, os.devnull, os.O_RDONLY)
    try:
        os.dup2(2, 1)
    except OSError:  # started with stderr closed: a child would otherwise get the next descriptor as its stderr
        _point(2, os.devnull, os.O_WRONLY)
        os.dup2(2, 1)
    return stdio


def _point(descriptor: int, path: str, flags: int) -> None:
    opened = os.open(path, flags)
    if opened == descriptor:
        os.set_inheritable(opened, True)
        return
    os.dup2(opened, descriptor)
    os.close(opened)
