"""A session as text: what was said, turn by turn, and what each turn changed."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from lyma_server.agent.rewind import turns_of
from lyma_server.protocol.events import ItemCompleted, TurnCompleted, TurnStarted
from lyma_server.protocol.items import EditItem, TextItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lyma_server.agent.session import SessionStore
    from lyma_server.protocol.events import Event, EventBody


def told(store: SessionStore, session: str) -> Iterator[str]:
    """Its lines. Raises SessionNotFound."""
    undone = {found.turn for found in turns_of(store, session) if found.undone}
    for turn, events in groupby(store.replay(session), key=lambda event: event.turn):
        yield from _turn(turn, events, undone=turn in undone)


def _turn(turn: str, events: Iterable[Event], *, undone: bool) -> Iterator[str]:
    yield f"turn {turn}" + (" (undone)" if undone else "")
    for event in events:
        yield from _lines(event.body)
    yield ""


def _lines(body: EventBody) -> Iterator[str]:
    if isinstance(body, TurnStarted):
        yield from (f"> {line}" for line in body.prompt.splitlines() or [""])
    elif isinstance(body, TurnCompleted) and body.stop_reason != "end_turn":
        yield f"({body.stop_reason})"
    elif isinstance(body, ItemCompleted) and isinstance(body.item, TextItem):
        yield body.item.text.rstrip("\n")
    elif isinstance(body, ItemCompleted) and isinstance(body.item, EditItem) and body.item.applied:
        yield f"changed {body.item.path}"
