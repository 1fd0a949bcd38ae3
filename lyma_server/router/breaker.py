"""The breaker of one (provider, model): stops asking a provider that fails, and lets one call through to see.

Times are monotonic seconds that the caller passes in.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import Factory, define

if TYPE_CHECKING:
    from lyma_server.router.standing import OpenBreaker

IN_A_ROW = 3
WINDOW_S = 60.0
FEWEST_IN_WINDOW = 6
FIRST_S = 15.0
LONGEST_S = 300.0
PROBE_S = 600.0
"""After this long without a verdict a probe counts as lost and another is let through."""

BreakerState: TypeAlias = Literal["closed", "open", "half_open"]


@define
class Breaker:
    """Opens at 3 failures in a row, or when over half of at least 6 outcomes in a minute failed; for 15 s, then twice as
    long each time up to 5 min, until a success closes it.
    """

    until: float = 0.0
    length_s: float = 0.0
    reason: str = ""
    _is_open: bool = False
    _in_a_row: int = 0
    _outcomes: deque[tuple[float, bool]] = Factory(lambda: deque(maxlen=1000))
    _probing_since: float | None = None

    def state(self, now: float) -> BreakerState:
        if not self._is_open:
            return "closed"
        return "open" if now < self.until else "half_open"

    def admits(self, now: float) -> bool:
        """Whether `admit` would let a call through; changes nothing."""
        state = self.state(now)
        if state == "half_open":
            return self._probing_since is None or now - self._probing_since >= PROBE_S
        return state == "closed"

    def admit(self, now: float) -> bool:
        """Let a call through or not. A half-open breaker admits one, whose verdict must be told by `succeeded`, `failed`,
        `opened_for` or `released`.
        """
        if not self.admits(now):
            return False
        if self._is_open:
            self._probing_since = now
        return True

    def succeeded(self, now: float) -> bool:
        """The provider answered. True where this closed the breaker. An answer to a call from before it opened leaves it."""
        self._outcomes.append((now, False))
        if self.state(now) == "open":
            return False
        was_open, self._is_open = self._is_open, False
        self._in_a_row, self._probing_since, self.reason = 0, None, ""
        if was_open:
            self.length_s = 0.0
            self._outcomes.clear()
        return was_open

    def failed(self, now: float, reason: str = "") -> bool:
        """The provider's fault. True where this opened the breaker, for `length_s` until `until`."""
        state = self.state(now)
        if state == "open":
            return False
        self._in_a_row += 1
        self._outcomes.append((now, True))
        if state == "closed" and not self._is_failing(now):
            return False
        self.length_s = min(self.length_s * 2, LONGEST_S) if self.length_s else FIRST_S
        self._open(now + self.length_s, reason)
        return True

    def opened_for(self, seconds: float, now: float, reason: str = "") -> bool:
        """Open at once, for a fault that needs no second look: no connection, no such host, no valid certificate."""
        self._open(max(self.until, now + seconds) if self._is_open else now + seconds, reason)
        return True

    def released(self) -> None:
        """The probe ended without a verdict on the provider (cancelled, or a fault of the key or the request)."""
        self._probing_since = None

    def adopt(self, shared: OpenBreaker | None, now: float) -> None:
        """Follow another process that opened it for longer."""
        if shared is not None and shared.until > now and (not self._is_open or shared.until > self.until):
            self.length_s = max(self.length_s, shared.seconds)
            self._open(shared.until, shared.reason)

    def _is_failing(self, now: float) -> bool:
        while self._outcomes and now - self._outcomes[0][0] > WINDOW_S:
            self._outcomes.popleft()
        failures = sum(failed for _, failed in self._outcomes)
        return self._in_a_row >= IN_A_ROW or (
            len(self._outcomes) >= FEWEST_IN_WINDOW and failures * 2 > len(self._outcomes)
        )

    def _open(self, until: float, reason: str) -> None:
        self._is_open, self.until, self.reason = True, until, reason
        self._in_a_row, self._probing_since = 0, None
        self._outcomes.clear()
