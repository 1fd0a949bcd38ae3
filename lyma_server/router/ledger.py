"""What was spent: a row for each attempt, kept with the state. Money is integer USD micros, null where no price is known."""

from __future__ import annotations

import secrets
import time
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lyma_server.router.database import Database

KEEP_DAYS = 90
_DAY_S = 86_400.0
_INSERT = "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOTALS = """
SELECT provider, count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
       coalesce(sum(cached_tokens), 0), coalesce(sum(cost_micros), 0), sum(cost_micros IS NULL), max(estimated)
FROM attempts WHERE at >= ? AND at < ? AND NOT (writer = ? AND number > ?) GROUP BY provider
"""


@frozen
class AttemptRow:
    """One attempt. `key` is the fingerprint, `ms` how long it took. `input_tokens` counts all input, `cached_tokens` those
    of them read from the provider's cache. `estimated`: the provider did not say, or was interrupted.
    """

    session: str
    provider: str
    key: str
    model: str
    class_: str
    ms: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micros: int | None = 0
    estimated: bool = False


@frozen
class Totals:
    """Sums over attempts. `cost_micros` is the known part; `unpriced` counts attempts whose price is not known."""

    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micros: int = 0
    unpriced: int = 0
    estimated: bool = False

    @property
    def shown_cost_micros(self) -> int | None:
        """Null where any part is unknown: never a sum that looks whole and is not."""
        return None if self.unpriced else self.cost_micros

    def plus(self, other: Totals) -> Totals:
        return Totals(
            self.attempts + other.attempts,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost_micros + other.cost_micros,
            self.unpriced + other.unpriced,
            self.estimated or other.estimated,
        )


@frozen
class _Entry:
    """A row that may not be on disk yet: the how-manieth of this ledger, and the number of its write."""

    count: int
    number: int
    at: float
    row: AttemptRow


class Ledger:
    """Rows are queued with the state's writes; totals are read from the disk, with what is not there yet."""

    def __init__(
        self, database: Database, *, wall: Callable[[], float] = time.time, keep_days: int = KEEP_DAYS
    ) -> None:
        self._database = database
        self._wall = wall
        self._keep_days = keep_days
        self._pruned = False
        self._writer = secrets.token_hex(8)
        self._count = 0
        self._on_disk_up_to = 0
        self._unsaved: list[_Entry] = []
        self._cache: tuple[int | None, float, dict[str, Totals]] = (None, 0.0, {})

    def record(self, row: AttemptRow) -> None:
        """Write `row` down, as of now."""
        now = self._wall()
        if not self._pruned:
            self._pruned = True
            self._database.write("DELETE FROM attempts WHERE at < ?", (now - self._keep_days * _DAY_S,))
        self._count += 1
        number = self._database.write(_INSERT, (*_values(now, row), self._writer, self._count))
        self._unsaved.append(_Entry(self._count, number, now, row))

    def today(self) -> Mapping[str, Totals]:
        """Totals by provider since the last local midnight."""
        now = self._wall()
        begin = midnight_before(now)
        totals = dict(self._on_disk(begin))
        self._unsaved = [entry for entry in self._unsaved if entry.at >= begin]
        for entry in self._unsaved:
            provider = entry.row.provider
            totals[provider] = totals.get(provider, Totals()).plus(_one(entry.row))
        return totals

    def _on_disk(self, begin: float) -> Mapping[str, Totals]:
        """Read again only when something was committed, or the day has changed."""
        version = self._database.version()
        if version is None:
            return self._cache[2] if self._cache[1] == begin else {}
        if self._cache[:2] != (version, begin):
            newest = max((e.count for e in self._unsaved if self._database.is_saved(e.number)), default=0)
            self._on_disk_up_to = max(self._on_disk_up_to, newest)
            rows = self._database.read(_TOTALS, (begin, begin + 2 * _DAY_S, self._writer, self._on_disk_up_to))
            if rows is not None:
                self._unsaved = [e for e in self._unsaved if not self._is_counted(e)]
                self._cache = (version, begin, {str(row[0]): _totals(row) for row in rows})
        return self._cache[2]

    def _is_counted(self, entry: _Entry) -> bool:
        """Whether the totals from the disk hold it; a row that was lost never is."""
        return entry.count <= self._on_disk_up_to and self._database.is_saved(entry.number)


def spent(totals: Mapping[str, Totals]) -> int:
    """What is known to be spent, in USD micros."""
    return sum(one.cost_micros for one in totals.values())


def is_over_cap(totals: Mapping[str, Totals], cap_micros: int | None) -> bool:
    """Whether the day's cap is reached, so that only what costs nothing may still be asked. No cap is never reached."""
    return cap_micros is not None and spent(totals) >= cap_micros


def midnight_before(now: float) -> float:
    """The last local midnight, in epoch seconds."""
    return (
        datetime.fromtimestamp(now)
        .astimezone()
        .replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        .timestamp()
    )


def sum_of(rows: Iterable[AttemptRow]) -> Totals:
    """Totals of some attempts, as for one turn."""
    total = Totals()
    for row in rows:
        total = total.plus(_one(row))
    return total


def _one(row: AttemptRow) -> Totals:
    return Totals(
        1,
        row.input_tokens,
        row.output_tokens,
        row.cached_tokens,
        row.cost_micros or 0,
        int(row.cost_micros is None),
        row.estimated,
    )


def _totals(row: tuple[int, ...]) -> Totals:
    return Totals(row[1], row[2], row[3], row[4], row[5], row[6], bool(row[7]))


def _values(at: float, row: AttemptRow) -> tuple[object, ...]:
    return (
        at,
        row.session,
        row.provider,
        row.key,
        row.model,
        row.class_,
        row.ms,
        row.input_tokens,
        row.output_tokens,
        row.cached_tokens,
        row.cost_micros,
        int(row.estimated),
    )
