"""Watches content, not bytes: keep-alives hide a dead stream from every timeout of a client library.

One timer serves a whole stream. Content only notes a time, so a chunk costs less than a microsecond; the timer looks at
the notes when it rings and sets itself anew. It can only ring while the provider is waited for: the time that the reader
of the stream takes for itself is not counted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")

Phase: TypeAlias = Literal["connecting", "waiting", "thinking", "streaming", "finishing"]


@frozen
class Patience:
    """How long to wait, in seconds. `deadline` is a time of the event loop's clock, for the call as a whole."""

    first_content_s: float
    first_content_thinking_s: float
    between_content_s: float
    deadline: float
    finishing_s: float = 5.0
    draining_s: float = 0.05


class Stalled(Exception):
    """Nothing came in time; `phase` tells what was waited for, `deadline` that the call as a whole ran out of time."""

    def __init__(self, phase: Phase, *, deadline: bool) -> None:
        super().__init__(phase)
        self.phase = phase
        self.deadline = deadline


class Watchdog:
    """Guards the waits of one attempt."""

    def __init__(self, patience: Patience, *, thinks: bool = False) -> None:
        """Start the clock. `thinks`: the model may think for long before it says anything."""
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._first = patience.first_content_thinking_s if thinks else patience.first_content_s
        self._limit = self._first
        self._since = self._time()
        self._paused_at = self._since
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._expired = False
        self.phase: Phase = "connecting"

    def answered(self) -> None:
        """The headers are there, the content is not."""
        self.phase = "waiting"

    def thinking(self) -> None:
        """The model said that it thinks; it may be long before it says anything else."""
        self.phase = "thinking"
        self._since = self._paused_at = self._time()
        self._limit = self._patience.first_content_thinking_s

    def progress(self) -> None:
        """Content came."""
        self.phase = "streaming"
        self._since = self._paused_at = self._time()
        self._limit = self._patience.between_content_s

    def finishing(self) -> None:
        """The answer is whole; what may still come (the usage) is worth a short wait only."""
        self.phase = "finishing"
        self._since = self._paused_at = self._time()
        self._limit = self._patience.finishing_s

    def draining(self) -> None:
        """Only the end of the body is missing; a new connection costs less than a long wait for it."""
        self.phase = "finishing"
        self._since = self._paused_at = self._time()
        self._limit = self._patience.draining_s

    async def guard(self, wait: Awaitable[T]) -> T:
        """Await `wait`. Raises Stalled when its time is over; a cancellation from outside stays one."""
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - a coroutine always runs in a task
            return await wait
        requests = task.cancelling()
        now = self._time()
        self._since += now - self._paused_at
        self._waiting = task
        self._arm(now)
        try:
            result = await wait
        except asyncio.CancelledError:
            if self._expired and task.uncancel() <= requests:
                raise self._stalled() from None
            raise
        finally:
            self._waiting = None
            self._paused_at = self._time()
        if self._expired:
            task.uncancel()
            raise self._stalled()
        return result

    def stop(self) -> None:
        """Forget the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stalled(self) -> Stalled:
        return Stalled(self.phase, deadline=self._time() >= self._patience.deadline)

    def _due(self) -> float:
        return min(self._since + self._limit, self._patience.deadline)

    def _arm(self, now: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._due(), now), self._ring)
        elif self._due() < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(max(self._due(), now), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        now = self._time()
        if now < self._due():
            self._arm(now)
            return
        self._expired = True
        self._waiting.cancel()
