"""How much following one command may cost. What costs more is not judged, so it is blocked."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lyma_server.executor.world import TooComplex

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_STEPS = 6000
MAX_DEPTH = 24
MAX_INSIDE = 60
MAX_TEXTS = 40
SECONDS = 2.0


class Budget:
    """Steps, seconds, program texts, and how deep texts and commands nest. Each method raises TooComplex at its limit."""

    def __init__(self, steps: int = MAX_STEPS, seconds: float = SECONDS) -> None:
        self._steps = steps
        self._texts = MAX_TEXTS
        self._depth = 0
        self._inside = 0
        self._deadline = time.monotonic() + seconds

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0 or time.monotonic() > self._deadline:
            raise TooComplex

    def enter(self) -> None:
        """One command inside another."""
        self.step()
        self._inside += 1
        if self._inside > MAX_INSIDE:
            raise TooComplex

    def leave(self) -> None:
        self._inside -= 1

    @contextmanager
    def text(self) -> Iterator[float]:
        """One program text inside another; gives the seconds that are left."""
        self._texts -= 1
        left_s = self._deadline - time.monotonic()
        if self._texts < 0 or self._depth > MAX_DEPTH or left_s <= 0:
            raise TooComplex
        self._depth += 1
        try:
            yield left_s
        finally:
            self._depth -= 1
