"""The events of one turn on their way to the editor: in order, without gaps, and no more of them than it can take.

Text that arrives in small parts is joined (about 20 parts a second or 4 KiB), and joined further while the client reads
slowly. `seq` counts what is sent, so it has no gaps.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from lyma_server.protocol.base import evolve
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.events import Event, ItemDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.protocol.base import Json

PERIOD_S: Final = 0.05
ENOUGH: Final = 4096
"""Characters of an item that are sent without waiting for the period."""


class EventStream:
    """A listener of one turn."""

    def __init__(self, send: Callable[[Json], None], congested: Callable[[], bool]) -> None:
        """`send` takes the params of `lyma/event`; `congested` tells whether the client reads too slowly."""
        self._send = send
        self._congested = congested
        self._loop = asyncio.get_running_loop()
        self._parts: dict[str, list[str]] = {}
        self._waiting = 0
        self._model: Event | None = None
        self._sent_at = -PERIOD_S
        self._timer: asyncio.TimerHandle | None = None
        self._seq = 0
        self._closed = False

    def __call__(self, event: Event) -> None:
        """Take an event of the turn."""
        if self._closed:
            return
        if not isinstance(event.body, ItemDelta):
            self._flush()
            self._emit(event)
            return
        self._model = event
        self._parts.setdefault(event.body.item, []).append(event.body.text)
        self._waiting += len(event.body.text)
        self._consider()

    def close(self) -> None:
        """Send what waits; whatever comes later is dropped."""
        if not self._closed:
            self._flush()
        self._closed = True

    def _consider(self) -> None:
        """Send now, or set the timer."""
        due = self._sent_at + PERIOD_S - self._loop.time()
        if not self._congested() and (due <= 0 or self._waiting >= ENOUGH):
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(max(due, PERIOD_S / 5), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._parts and not self._closed:
            self._consider()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        parts, self._parts, self._waiting = self._parts, {}, 0
        for item, texts in parts.items():
            if self._model is not None:
                self._emit(evolve(self._model, body=ItemDelta(item=item, text="".join(texts))))
        if parts:
            self._sent_at = self._loop.time()

    def _emit(self, event: Event) -> None:
        self._seq += 1
        self._send(unstructure(evolve(event, seq=self._seq)))
