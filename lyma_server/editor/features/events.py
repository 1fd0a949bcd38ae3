"""The events of one turn on their way to the editor: in order, without gaps, and no more of them than it can take.

The agent joins text that arrives in small parts. While the client reads more slowly than that, the parts are joined
further here, so that what waits is never more than the answer itself. `seq` counts what is sent, so it has no gaps.
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

GLANCE_S: Final = 0.05
"""How often a congested client is looked at again."""


class EventStream:
    """A listener of one turn."""

    def __init__(self, send: Callable[[Json], None], congested: Callable[[], bool]) -> None:
        """`send` takes the params of `lyma/event`; `congested` tells whether the client reads too slowly."""
        self._send = send
        self._congested = congested
        self._waiting: dict[str, list[str]] = {}
        self._last: Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._seq = 0
        self._closed = False

    def __call__(self, event: Event) -> None:
        """Take an event of the turn."""
        if self._closed:
            return
        if isinstance(event.body, ItemDelta) and (self._waiting or self._congested()):
            self._last = event
            self._waiting.setdefault(event.body.item, []).append(event.body.text)
            self._look_again()
            return
        self._flush()
        self._emit(event)

    def close(self) -> None:
        """Send what waits; whatever comes later is dropped."""
        if not self._closed:
            self._flush()
        self._closed = True

    def _look_again(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GLANCE_S, self._glance)

    def _glance(self) -> None:
        self._timer = None
        if self._congested():
            self._look_again()
        else:
            self._flush()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for item, texts in waiting.items():
            if self._last is not None:
                self._emit(evolve(self._last, body=ItemDelta(item=item, text="".join(texts))))

    def _emit(self, event: Event) -> None:
        self._seq += 1
        self._send(unstructure(evolve(event, seq=self._seq)))
