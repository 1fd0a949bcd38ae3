"""Interleaved measurement: A B A B …, so that a machine whose speed drifts treats both alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@frozen(kw_only=True)
class Figure:
    """One compared figure. Times are medians in milliseconds; `value` is the median over the pairs of their ratio, or of
    how many milliseconds ours takes more, by `unit`.
    """

    name: str
    ours_ms: float
    theirs_ms: float
    value: float
    target: float
    runs: int
    unit: Literal["times", "ms more"] = "times"

    @property
    def holds(self) -> bool:
        """Whether the value is within its target."""
        return self.value <= self.target


@frozen(kw_only=True)
class Report:
    """What one benchmark found: figures with a target, and a table (Markdown) of what else was measured beside them."""

    figures: tuple[Figure, ...]
    table: str = ""


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
    return figure(name, [(timed(ours), timed(theirs)) for _ in range(runs)], target=target)


def figure(
    name: str,
    pairs: Sequence[tuple[float, float]],
    *,
    target: float,
    unit: Literal["times", "ms more"] = "times",
    runs: int | None = None,
) -> Figure:
    """The figure of pairs (ours, theirs), each measured side by side. `runs`: where a pair stands for more than one."""
    values = [ours / theirs if unit == "times" else ours - theirs for ours, theirs in pairs]
    return Figure(
        name=name,
        ours_ms=statistics.median(pair[0] for pair in pairs),
        theirs_ms=statistics.median(pair[1] for pair in pairs),
        value=statistics.median(values),
        target=target,
        runs=runs or len(pairs),
        unit=unit,
    )


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table, what counts first."""
    lines = [
        "| figure | measured | at most | holds | ours, ms | compared with, ms | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {f.name} | {_said(f.value, f.unit)} | {_said(f.target, f.unit)} | {'yes' if f.holds else 'no'} "
        f"| {f.ours_ms:.2f} | {f.theirs_ms:.2f} | {f.runs} |"
        for f in figures
    ]
    return "\n".join(lines)


def _said(value: float, unit: str) -> str:
    return f"{value:.2f} x" if unit == "times" else f"{value:+.2f} ms"
