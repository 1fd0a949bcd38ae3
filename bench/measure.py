"""Interleaved measurement: A B A B …, so that a machine whose speed drifts treats both alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Unit: TypeAlias = Literal["times", "ms more", "ms", "MiB"]
SAID = {"times": "{:.2f} x", "ms more": "{:+.2f} ms", "ms": "{:.0f} ms", "MiB": "{:.0f} MiB"}


@frozen(kw_only=True)
class Figure:
    """One compared figure. Times are medians in milliseconds; `value` is the median over the pairs of their ratio, or of
    how many milliseconds ours takes more, by `unit`. Where nothing is compared there are no times, and `value` has the unit.
    """

    name: str
    ours_ms: float | None
    theirs_ms: float | None
    value: float
    target: float
    runs: int
    unit: Unit = "times"

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
    unit: Unit = "times",
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
        f"| {_time(f.ours_ms)} | {_time(f.theirs_ms)} | {f.runs} |"
        for f in figures
    ]
    return "\n".join(lines)


def bound(name: str, value: float, *, target: float, unit: Unit) -> Figure:
    """A figure that stands for itself and is compared with its target only."""
    return Figure(name=name, ours_ms=None, theirs_ms=None, value=value, target=target, runs=1, unit=unit)


def _said(value: float, unit: Unit) -> str:
    return SAID[unit].format(value)


def _time(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.2f}"
