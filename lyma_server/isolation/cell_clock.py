"""What a cell has used of what the kernel does not bound for it: processor time, all its processes together, and files.

The kernel's limit on processor time counts each process by itself, and a file system in memory takes as many empty files
as a machine bears, which are memory, too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import define, field

from lyma_server.isolation.family import descendants, times

LOOK_S: Final = 0.25
"""Seconds between two looks; what is used in between may go beyond a limit."""

FILE_BYTES: Final = 1 << 10
"""What a file costs though nothing is in it."""

LEAST_FILES: Final = 1_000

TICKS: Final = os.sysconf("SC_CLK_TCK")


@define
class CellClock:
    """For the first process of a cell. What ended between two looks is counted with the parent that collected it."""

    first: int
    _seen: dict[tuple[int, int], int] = field(factory=dict)

    def seconds(self) -> float:
        """All that was used so far, as far as it could be seen: never more than it was."""
        living = 0
        for pid in (self.first, *descendants(self.first)):
            with suppress(OSError, IndexError):
                own, collected, begun = times(pid)
                self._seen[pid, begun] = own
                living += own + collected
        return max(living, sum(self._seen.values())) / TICKS

    def has_too_many_files(self, folder: str, size: int) -> bool:
        """Whether the files of a file system inside cost more than its `size` though they were empty.

        Until bubblewrap has turned its root, `folder` is one of ours.
        """
        root = Path(f"/proc/{self.first}/root")
        with suppress(OSError):
            if root.samefile("/"):
                return False
            facts = os.statvfs(f"{root}{folder}")
            return (facts.f_files - facts.f_ffree) * FILE_BYTES > max(size, LEAST_FILES * FILE_BYTES)
        return False
