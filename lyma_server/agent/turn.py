"""One turn: what a face holds while the agent works."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeAlias

from lyma_server.agent import loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from lyma_server.agent.ask import Ask
    from lyma_server.protocol.events import StopReason
    from lyma_server.protocol.messages import AskResult

GRACE_S = 1.5
"""How long the work may take to end after a stop; then it is abandoned, so that the answer comes in under two seconds."""

Work: TypeAlias = "Callable[[Ask], Coroutine[Any, Any, StopReason]]"
"""What a turn does. It may raise, and is cancelled where the turn is stopped."""

log = logging.getLogger(__name__)


class Turn:
    """A turn under way. `session` and `turn` are its ids.

    The work runs in a task of its own, which a stop cancels; the turn itself is never cancelled, so that it always ends
    with `turn.completed` and one result.
    """

    def __init__(self, ask: Ask, close: Callable[[], None], work: Work = loop.run) -> None:
        self._does = work
        self.session, self.turn = ask.session, ask.turn
        self._ask, self._close = ask, close
        self._stop: asyncio.Future[StopReason] = asyncio.get_running_loop().create_future()
        self._work: asyncio.Task[StopReason] | None = None
        self._whole = asyncio.create_task(self._run(), name=f"turn {self.turn}")
        self._whole.add_done_callback(_retrieve)

    async def result(self) -> AskResult:
        """Wait for the end; several may. A cancelled turn has a result like any other.

        Raises what ended the turn early (AllFailed, StreamInterrupted, UsageError, …), always after `turn.completed`.
        """
        return await asyncio.shield(self._whole)

    def cancel(self) -> None:
        """Stop: at any time, any number of times. The result follows in under two seconds."""
        self._end_early("cancelled")

    def _end_early(self, reason: StopReason) -> None:
        if self._stop.done():
            return
        self._stop.set_result(reason)
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> AskResult:
        seconds = self._ask.limits.seconds
        timer = (
            asyncio.get_running_loop().call_later(seconds, self._end_early, "budget") if seconds is not None else None
        )
        try:
            stop, error = await self._outcome()
            loop.end(self._ask, stop)
        finally:
            if timer is not None:
                timer.cancel()
            self._close()
        if error is not None:
            raise error
        return self._ask.result(stop)

    async def _outcome(self) -> tuple[StopReason, BaseException | None]:
        """How the work ended: why, and the error if one ended it."""
        if self._stop.done():
            return self._stop.result(), None
        work = self._work = asyncio.create_task(self._does(self._ask), name=f"work of turn {self.turn}")
        await self._wait_for(work)
        if not work.done():
            log.error("Turn %s did not end when it was stopped", self.turn)
        if not work.done() or work.cancelled() or (self._stop.done() and work.exception() is not None):
            return self._stop.result() if self._stop.done() else "cancelled", None
        error = work.exception()
        return ("interrupted", error) if error is not None else (work.result(), None)

    async def _wait_for(self, work: asyncio.Task[StopReason]) -> None:
        """Until it is done, or has been told to stop and had its time. The end of the event loop is a stop too."""
        try:
            await asyncio.wait({work, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._end_early("cancelled")
        if not work.done():
            await asyncio.wait({work}, timeout=GRACE_S)


def _retrieve(task: asyncio.Task[AskResult]) -> None:
    """Nobody may be waiting for the result; asyncio would then complain about the error in it."""
    if not task.cancelled():
        task.exception()
