"""Numbers the events of a turn, hides secrets in them, and sends growing text a few times a second.

`seq` starts at 1 and has no gaps. Nothing follows `turn.completed`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from lyma_server.agent.texts import map_texts, whole
from lyma_server.protocol.events import Event, EventBody, ItemCompleted, ItemDelta, ItemDiscarded, TurnCompleted

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.ports import Listener
    from lyma_server.secret import Redactor, StreamRedactor

INTERVAL_S = 0.05
LARGEST_DELTA = 4096
"""Characters; more are sent at once."""

log = logging.getLogger(__name__)


class EventStream:
    """Where a turn says what happened. `keep` gets what a later reader needs: every event but the deltas of items that
    were completed, whose text is in the completed item.
    """

    def __init__(
        self, session: str, turn: str, redactor: Redactor, listener: Listener, keep: Callable[[EventBody], None]
    ) -> None:
        self._session, self._turn, self._redactor = session, turn, redactor
        self._listener, self._keep = listener, keep
        self._seq = 0
        self._closed = False
        self._masks: dict[str, StreamRedactor] = {}
        self._said: dict[str, list[str]] = {}
        self._item, self._waiting, self._length = "", list[str](), 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_sent = float("-inf")

    @property
    def begun(self) -> bool:
        """Whether anything was said yet."""
        return self._seq > 0

    def emit(self, body: EventBody) -> None:
        """Say that something happened; after `turn.completed` nothing is heard."""
        if self._closed:
            return
        if isinstance(body, ItemDelta):
            self._grow(body)
            return
        if isinstance(body, (ItemCompleted, ItemDiscarded)):
            self._end_item(body)
        self._flush()
        body = map_texts(body, lambda text: self._redactor.redact(whole(text)))
        self._keep(body)
        self._send(body)
        self._closed = isinstance(body, TurnCompleted)

    def _grow(self, delta: ItemDelta) -> None:
        """Let the first words through at once and gather those that follow closely."""
        if delta.item not in self._masks:
            self._masks[delta.item] = self._redactor.stream()
        self._add(delta.item, self._masks[delta.item].feed(delta.text))
        loop = asyncio.get_running_loop()
        wait = self._last_sent + INTERVAL_S - loop.time()
        if wait <= 0 or self._length >= LARGEST_DELTA:
            self._flush()
        elif self._timer is None and self._length:
            self._timer = loop.call_later(wait, self._flush)

    def _add(self, item: str, text: str) -> None:
        if item != self._item:
            self._flush()
            self._item = item
        if text:
            self._waiting.append(text)
            self._length += len(text)

    def _end_item(self, body: ItemCompleted | ItemDiscarded) -> None:
        """Say the rest of an item's text; keep what a discarded item had said, for it is nowhere else."""
        discarded = isinstance(body, ItemDiscarded)
        item = body.item if isinstance(body, ItemDiscarded) else body.item.id
        mask = self._masks.pop(item, None)
        if mask is not None:
            self._add(item, mask.flush())
            self._flush()
        said = self._said.pop(item, [])
        if discarded and said:
            self._keep(ItemDelta(item=item, text="".join(said)))

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._length:
            return
        delta = ItemDelta(item=self._item, text="".join(self._waiting))
        self._waiting, self._length = [], 0
        self._said.setdefault(delta.item, []).append(delta.text)
        self._last_sent = asyncio.get_running_loop().time()
        self._send(delta)

    def _send(self, body: EventBody) -> None:
        self._seq += 1
        event = Event(session=self._session, turn=self._turn, seq=self._seq, body=body)
        try:
            self._listener(event)
        except Exception:
            log.exception("A listener failed on %s", body.type)
