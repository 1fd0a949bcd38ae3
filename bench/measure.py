"""Interleaved measurement: A B A B …, so that a machine whose speed drifts treats both alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@frozen(kw_only=True)
class Figure:
    """One compared figure. Times are medians in milliseconds; `ratio` is the median of the ratios of each pair."""

    name: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    target: float
    runs: int

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its target."""
        return self.ratio <= self.target


def timed(action: Callable[[], object]) -> float:
    """Milliseconds that `action` takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def compare(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], *, target: float, runs: int = 15
) -> Figure:
    """Measure two actions in turn after one warm-up each."""
    ours()
    theirs()
    pairs = [(timed(ours), timed(theirs)) for _ in range(runs)]
    return Figure(
        name=name,
        ours_ms=statistics.median(pair[0] for pair in pairs),
        theirs_ms=statistics.median(pair[1] for pair in pairs),
        ratio=statistics.median(pair[0] / pair[1] for pair in pairs),
        target=target,
        runs=runs,
    )


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table, ratios first."""
    lines = [
        "| figure | ratio | at most | holds | ours, ms | compared with, ms | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {f.name} | {f.ratio:.2f} | {f.target:.2f} | {'yes' if f.holds else 'no'} "
        f"| {f.ours_ms:.1f} | {f.theirs_ms:.1f} | {f.runs} |"
        for f in figures
    ]
    return "\n".join(lines)
