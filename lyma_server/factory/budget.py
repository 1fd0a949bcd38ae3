"""What a run may use up, counted by the parent: for the run and for every run above it, under one lock.

Before a call its upper bound is reserved; after it, what was really used is settled. A reservation that is never settled,
or settled with usage that is missing or cannot be true, stays charged in full. So nothing ever spends more than it may.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, fields, frozen

from lyma_server.factory.versions import MOST_RUNNING, MOST_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@frozen(kw_only=True)
class Amount:
    """Numbers of things; `bytes_read` and so on are bytes of files, `cost_micros` integer USD micros.

    `running` counts runs that have begun and not ended, `runs` all that have begun.
    """

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost_micros: int = 0
    files_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_output: int = 0
    runs: int = 0
    running: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(**{name: getattr(self, name) + getattr(other, name) for name in NAMES})

    def __sub__(self, other: Amount) -> Amount:
        return Amount(**{name: getattr(self, name) - getattr(other, name) for name in NAMES})


NAMES: Final = tuple(field.name for field in fields(Amount))

NOTHING: Final = Amount()
UNBOUNDED: Final = 1 << 62
ASKER: Final = "the ask"
"""How sentences name whoever asks for a run."""


class Exhausted(Exception):
    """There is no room for what was asked; nothing was reserved. `what` names the limit, `path` whose it is, root first.
    `asked` is how much of it was asked for and `room` what was left, where that is known.
    """

    def __init__(self, what: str, path: tuple[str, ...], asked: int = 0, room: int = 0) -> None:
        super().__init__(f"{what} of {' > '.join(path)} is used up")
        self.what = what
        self.path = path
        self.asked = asked
        self.room = room


@frozen
class Limits:
    """The most that a run may use, and for how many seconds it may last."""

    most: Amount
    wall_s: float


@define
class Account:
    """What one run may use, has used and has set aside. `end` is a monotonic time."""

    path: tuple[str, ...]
    most: Amount
    end: float
    used: Amount = NOTHING
    reserved: Amount = NOTHING

    @property
    def room(self) -> Amount:
        return self.most - self.used - self.reserved

    def check(self, amount: Amount, now: float) -> None:
        """Raise Exhausted where there is no room for `amount`, or no time."""
        if now > self.end:
            raise Exhausted("wall_s", self.path)
        room = self.room
        for name in NAMES:
            asked, left = getattr(amount, name), max(0, getattr(room, name))
            if asked > left:
                raise Exhausted(name, self.path, asked, left)


class Budget:
    """The budget of one run. All budgets of a tree share the lock of its root. `clock` gives monotonic seconds."""

    def __init__(self, name: str, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: tuple[Account, ...] = (Account((name,), limits.most, clock() + limits.wall_s),)

    def child(self, name: str, limits: Limits) -> Budget:
        """The budget of a run below this one. It is held to its own limits and to what every run above has left."""
        child = Budget(name, limits, self._clock)
        own = child._accounts[0]
        own.path = (*self.path, name)
        child._lock, child._accounts = self._lock, (own, *self._accounts)
        return child

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the runs from the root to this one."""
        return self._accounts[0].path

    @property
    def used(self) -> Amount:
        """What this run and all below it have used."""
        with self._lock:
            return self._accounts[0].used

    def left(self) -> Amount:
        """What may still be reserved here."""
        with self._lock:
            rooms = [account.room for account in self._accounts]
        return Amount(**{name: max(0, min(getattr(room, name) for room in rooms)) for name in NAMES})

    def seconds_left(self) -> float:
        """Until the run must end; 0 where it should have."""
        return max(0.0, min(account.end for account in self._accounts) - self._clock())

    def reserve(self, amount: Amount) -> Reservation:
        """Set `amount` aside, here and in every run above. Raises Exhausted where any lacks room or time."""
        if not _is_within(amount, amount):
            raise ValueError("an amount is whole and never negative")
        with self._lock:
            now = self._clock()
            for account in self._accounts:
                account.check(amount, now)
            for account in self._accounts:
                account.reserved += amount
        return Reservation(self._settle, amount)

    def spend(self, amount: Amount) -> None:
        """Use up what is known beforehand. Raises Exhausted."""
        self.reserve(amount).settle(amount)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a run that begins here and ends with the block. Raises Exhausted."""
        reservation = self.reserve(Amount(runs=1, running=1))
        try:
            yield
        finally:
            reservation.settle(Amount(runs=1))

    def _settle(self, reserved: Amount, used: Amount) -> None:
        with self._lock:
            for account in self._accounts:
                account.reserved -= reserved
                account.used += used


class Reservation:
    """What was set aside for one call. Settle it once; what is never settled stays set aside."""

    def __init__(self, settle: Callable[[Amount, Amount], None], amount: Amount) -> None:
        self._settle = settle
        self._open = True
        self.amount = amount

    def settle(self, used: Amount | None) -> Amount:
        """Charge what was used, and give the rest back; returns what was charged.

        Where `used` is null, or in anything negative or beyond what was set aside, it cannot be true: all is charged.
        Raises RuntimeError the second time.
        """
        if not self._open:
            raise RuntimeError("a reservation is settled once")
        self._open = False
        charged = used if used is not None and _is_within(used, self.amount) else self.amount
        charged = evolve(charged, running=0)
        self._settle(self.amount, charged)
        return charged


def asker_budget(tokens: int | None, cost_micros: int | None) -> Budget:
    """That of whoever asks for a run: it bounds what is given and nothing else."""
    bounds = {"tokens": tokens, "cost_micros": cost_micros}
    most = dict.fromkeys(NAMES, UNBOUNDED) | {name: most for name, most in bounds.items() if most is not None}
    return Budget(ASKER, Limits(Amount(**most), math.inf))


def limits_of(facts: Mapping[str, Any]) -> Limits:
    """The limits that a manifest sets; runs are counted with the one itself."""
    spec = facts["spec"]
    budget, files, delegate = spec["budget"], spec["files"], spec["delegate"]
    most = Amount(
        turns=budget["max_turns"],
        tool_calls=budget["max_tool_calls"],
        tokens=budget["max_tokens"],
        cost_micros=budget["max_cost_micros"],
        files_read=files["max_files"],
        bytes_read=files["max_read_bytes"],
        bytes_written=files["max_write_bytes"],
        bytes_output=spec["output"]["max_bytes"],
        runs=min(delegate["max_runs"], MOST_RUNS) + 1,
        running=MOST_RUNNING + 1,
    )
    return Limits(most, budget["wall_s"])


def _is_within(amount: Amount, most: Amount) -> bool:
    return all(
        type(getattr(amount, name)) is int and 0 <= getattr(amount, name) <= getattr(most, name) for name in NAMES
    )
