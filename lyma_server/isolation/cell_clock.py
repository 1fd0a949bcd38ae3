"""How much processor time a cell has used, all its processes together. The kernel's own limit counts each by itself."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from attrs import define, field

from lyma_server.isolation.family import descendants, times

LOOK_S: Final = 0.25
"""Seconds between two looks; so much may be used beyond the limit, by each processor."""

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
