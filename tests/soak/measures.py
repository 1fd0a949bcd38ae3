"""What a process holds, as /proc tells it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from tests.processes import descendants, is_gone, words_of

MIB = 1 << 20


@frozen
class Holdings:
    """Resident memory in MiB, descriptors by kind, and the command lines of living descendants."""

    memory_mib: float
    descriptors: Counter[str]
    children: tuple[str, ...]


def holdings(pid: int) -> Holdings:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    living = sorted(each for each in descendants(pid) if not is_gone(each))
    return Holdings(
        pages * os.sysconf("SC_PAGE_SIZE") / MIB,
        Counter(kind for fd in os.listdir(f"/proc/{pid}/fd") if (kind := kind_of(pid, fd))),
        tuple(words_of(each).replace(b"\0", b" ").decode(errors="replace")[:120] for each in living),
    )


def kind_of(pid: int, descriptor: str) -> str:
    """`socket`, `pipe`, or the path of a file; empty for one that was closed meanwhile."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{descriptor}").partition(":[")[0]
    return ""
