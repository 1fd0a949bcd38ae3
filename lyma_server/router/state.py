"""What is held against keys, accounts and providers, shared by every process of this user through `state.db`.

On disk times are wall-clock seconds, in memory they are monotonic: a clock that jumps changes nothing for a process that
runs, and another process ignores rows that are older than a day or come from the future. Own writes hold at once in
memory, whether or not the disk takes them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from attrs import evolve

from lyma_server.router.standing import Held, OpenBreaker, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.router.database import Database
    from lyma_server.router.standing import Mark

DAY_S = 86_400.0
FUTURE_S = 300.0
"""Clocks of one machine agree; a row this far in the future was written before a jump."""

_HOLD = f"""
INSERT INTO marks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)
ON CONFLICT (provider, subject, model) DO UPDATE SET
    strikes = CASE WHEN at < ?5 - {DAY_S} OR at > ?5 + {FUTURE_S} THEN 1
                   WHEN until > ?5 AND strikes > 0 THEN strikes ELSE strikes + 1 END,
    reason = CASE WHEN until > ?4 AND at <= ?5 + {FUTURE_S} THEN reason ELSE ?6 END,
    stamp = CASE WHEN until > ?4 AND at <= ?5 + {FUTURE_S} THEN stamp ELSE ?7 END,
    until = CASE WHEN until > ?4 AND at <= ?5 + {FUTURE_S} THEN until ELSE ?4 END,
    at = ?5
"""  # noqa: S608 -- only our own constants are put in
_OPEN = f"""
INSERT INTO breakers VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (provider, model) DO UPDATE SET
    until = CASE WHEN until > ?3 AND at <= ?4 + {FUTURE_S} THEN until ELSE ?3 END,
    at = ?4, seconds = ?5, reason = ?6
"""  # noqa: S608 -- only our own constants are put in
_LEARN = "INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)"
_PRUNE = (
    f"DELETE FROM marks WHERE at < ?1 - {2 * DAY_S} OR at > ?1 + {2 * DAY_S}",  # noqa: S608 -- as above
    f"DELETE FROM breakers WHERE at < ?1 - {2 * DAY_S} OR at > ?1 + {2 * DAY_S}",  # noqa: S608 -- as above
)


class State:
    """Reads cost microseconds and never wait; writes are queued. `database` may be one without a path: memory only."""

    def __init__(
        self,
        database: Database,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.database = database
        self._wall = wall
        self._monotonic = monotonic
        self._version: int | None = None
        self._snapshot = Snapshot()
        self._own: dict[tuple[str, ...], tuple[int, Any]] = {}
        self._deadlines: dict[tuple[Any, ...], float] = {}
        self._pruned = False

    def snapshot(self) -> Snapshot:
        """All that is known now, from the disk as far as it can be read, and from this process."""
        version = self.database.version()
        if version is not None and version != self._version:
            self._reload(version)
        return self._snapshot

    def hold(self, mark: Mark) -> None:
        """Keep `mark`; it never shortens what is held already."""
        wall, now = self._wall(), self._monotonic()
        place = (mark.provider, mark.subject, mark.model)
        number = self.database.write(_HOLD, (*place, wall + mark.seconds, wall, mark.reason, mark.stamp))
        self._prune_once()  # after the row has today's date, so that no process sees it gone for a moment
        old = self._snapshot.marks.get(place)
        held = Held(now + mark.seconds, mark.reason, mark.stamp, strikes=1)
        if old is not None:
            strikes = old.strikes if old.until > now and old.strikes else old.strikes + 1
            held = evolve(old if old.until > held.until else held, strikes=strikes)
        self._keep(("mark", *place), number, held)

    def answered(self, place: tuple[str, str, str]) -> None:
        """A success at (provider, subject, model) ends its strikes, so that the next cooldown is short again."""
        old = self._snapshot.marks.get(place)
        if old is not None and old.strikes:
            number = self.database.write(
                "UPDATE marks SET strikes = 0 WHERE (provider, subject, model) = (?, ?, ?)", place
            )
            self._keep(("mark", *place), number, evolve(old, strikes=0))

    def learn(self, provider: str, fingerprint: str, account: str) -> None:
        """Remember whose key it is, from what a reply said."""
        if self._snapshot.learned.get((provider, fingerprint)) != account:
            number = self.database.write(_LEARN, (provider, fingerprint, account, self._wall()))
            self._keep(("learned", provider, fingerprint), number, account)

    def open_breaker(self, provider: str, model: str, seconds: float, reason: str) -> None:
        """Tell the other processes that this provider is not to be asked for `seconds`."""
        wall = self._wall()
        number = self.database.write(_OPEN, (provider, model, wall + seconds, wall, seconds, reason))
        opened = OpenBreaker(self._monotonic() + seconds, seconds, reason)
        self._keep(("breaker", provider, model), number, opened)

    def close_breaker(self, provider: str, model: str) -> None:
        """Tell the other processes that it answers again."""
        number = self.database.write("DELETE FROM breakers WHERE (provider, model) = (?, ?)", (provider, model))
        self._keep(("breaker", provider, model), number, None)

    def release(self, place: tuple[str, str, str]) -> bool:
        """Take back what is held at (provider, subject, model); whether it was in force."""
        held = self._snapshot.marks.get(place)
        number = self.database.write("DELETE FROM marks WHERE (provider, subject, model) = (?, ?, ?)", place)
        self._keep(("mark", *place), number, None)
        return held is not None and held.until > self._monotonic()

    def held_providers(self) -> frozenset[str]:
        """The providers against which, or against a key of which, something is in force."""
        snapshot, now = self.snapshot(), self._monotonic()
        held = {provider for (provider, _, _), mark in snapshot.marks.items() if mark.until > now}
        return frozenset(held | {provider for (provider, _), each in snapshot.breakers.items() if each.until > now})

    def forget(self, provider: str) -> None:
        """Free all keys of a provider and close its breakers, when a person has mended it."""
        number = 0
        for table in ("marks", "breakers"):
            number = self.database.write(f"DELETE FROM {table} WHERE provider = ?", (provider,))  # noqa: S608 -- two fixed names
        for place in [place for place in self._snapshot.marks if place[0] == provider]:
            self._keep(("mark", *place), number, None)
        for spot in [spot for spot in self._snapshot.breakers if spot[0] == provider]:
            self._keep(("breaker", *spot), number, None)

    def _keep(self, place: tuple[str, ...], number: int, value: object) -> None:
        """Own knowledge beats the disk's until the disk has it."""
        self._own[place] = (number, value)
        self._snapshot = self._with_own(self._snapshot)

    def _reload(self, version: int) -> None:
        settled = {place for place, (number, _) in self._own.items() if self.database.is_saved(number)}
        marks = self.database.read("SELECT provider, subject, model, until, at, reason, stamp, strikes FROM marks")
        breakers = self.database.read("SELECT provider, model, until, at, seconds, reason FROM breakers")
        learned = self.database.read("SELECT provider, fingerprint, account FROM learned")
        if marks is None or breakers is None or learned is None:
            return
        self._version = version
        old, self._deadlines = self._deadlines, {}
        found_marks: dict[tuple[str, str, str], Held] = {}
        for row in marks:
            until = self._deadline(("mark", *row[:5]), row[3], row[4], old)
            if until is not None:
                found_marks[row[0], row[1], row[2]] = Held(until, str(row[5]), str(row[6]), _count(row[7]))
            else:  # the clock has jumped since it was written; what this process wrote holds by its own time
                settled.discard(("mark", *row[:3]))
        found_breakers: dict[tuple[str, str], OpenBreaker] = {}
        for row in breakers:
            until = self._deadline(("breaker", *row[:4]), row[2], row[3], old)
            if until is not None:
                found_breakers[row[0], row[1]] = OpenBreaker(until, _seconds(row[4]), str(row[5]))
            else:
                settled.discard(("breaker", *row[:2]))
        self._own = {place: own for place, own in self._own.items() if place not in settled}
        found_learned = {(row[0], row[1]): str(row[2]) for row in learned}
        self._snapshot = self._with_own(Snapshot(found_marks, found_learned, found_breakers))

    def _deadline(
        self, identity: tuple[Any, ...], until: object, at: object, known: dict[tuple[Any, ...], float]
    ) -> float | None:
        """The monotonic end of a row, worked out when it is first seen; None for a row that cannot be believed."""
        if not isinstance(until, (int, float)) or not isinstance(at, (int, float)):
            return None
        deadline = known.get(identity)
        if deadline is None:
            wall = self._wall()
            if not wall - DAY_S <= at <= wall + FUTURE_S:
                return None
            deadline = self._monotonic() + min(until - wall, until - at, DAY_S)
        self._deadlines[identity] = deadline
        return deadline

    def _with_own(self, shared: Snapshot) -> Snapshot:
        marks, learned, breakers = dict(shared.marks), dict(shared.learned), dict(shared.breakers)
        tables: dict[str, dict[Any, Any]] = {"mark": marks, "learned": learned, "breaker": breakers}
        for (kind, *place), (_, value) in self._own.items():
            if value is None:
                tables[kind].pop(tuple(place), None)
                continue
            other = tables[kind].get(tuple(place))
            tables[kind][tuple(place)] = value if kind == "learned" or other is None else _longer(value, other.until)
        return Snapshot(marks, learned, breakers)

    def _prune_once(self) -> None:
        if not self._pruned:
            self._pruned = True
            for statement in _PRUNE:
                self.database.write(statement, (self._wall(),))


def _longer(value: Any, until: float) -> Any:
    return evolve(value, until=max(value.until, until))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
