"""What a session's file says was shown, told once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.agent.record import records
from lyma_server.protocol.events import Event, EventBody, ItemDiscarded, TurnCompleted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.protocol.base import Json

ENDED = b'"body":{"type":"turn.completed"'
"""Stands in the last line of a file whose last turn ended; inside of a text its quotes would be escaped."""


def replayed(session: str, data: bytes, *, under_way: bool) -> Iterator[Event]:
    """The events of a session with `replay` set, numbered anew, for the deltas are not kept. A turn that never ended is
    ended as interrupted, unless it is the last and the session is `under_way`.
    """
    from lyma_server.protocol.convert import structure

    for event in replayed_json(session, data, under_way=under_way):
        yield structure(Event, event)


def replayed_json(session: str, data: bytes, *, under_way: bool) -> Iterator[Json]:
    """The same as they are on the wire. They are kept in that form, so that a long session is told at once."""
    from lyma_server.protocol.convert import unstructure

    for turn, bodies in _turns(data).items():
        unfinished = [] if under_way else [unstructure(ending) for ending in _endings(bodies)]
        for seq, body in enumerate([*bodies, *unfinished], 1):
            yield {**body, "session": session, "turn": turn, "seq": seq, "replay": True}


def missing_end(data: bytes) -> tuple[str, list[EventBody]] | None:
    """The last turn with the events that would end it, if it has not ended."""
    if ENDED in data[data.rfind(b"\n", 0, -1) + 1 :]:
        return None
    start = data.rfind(b'{"type":"turn"')
    turn = next(records(data[start:], "turn"), None) if start >= 0 else None
    if turn is None:
        return None
    bodies = [record["body"] for record in records(data[start:], "event") if record["turn"] == turn["turn"]]
    endings = _endings(bodies)
    return (turn["turn"], endings) if endings else None


def _turns(data: bytes) -> dict[str, list[Json]]:
    turns: dict[str, list[Json]] = {record["turn"]: [] for record in records(data, "turn")}
    for record in records(data, "event"):
        turns.setdefault(record["turn"], []).append(record["body"])
    return turns


def _endings(bodies: list[Json]) -> list[EventBody]:
    """Discard the items that never were complete, and end the turn."""
    if bodies and bodies[-1].get("type") == "turn.completed":
        return []
    started = {_item(body): None for body in bodies if body.get("type") == "item.started"}
    for body in bodies:
        if body.get("type") in {"item.completed", "item.discarded"}:
            started.pop(_item(body), None)
    given_up: list[EventBody] = [ItemDiscarded(item=item, reason="interrupted") for item in started if item]
    return [*given_up, TurnCompleted(stop_reason="interrupted")]


def _item(body: Json) -> str:
    """The id of the item that an event is about; empty where a damaged line names none."""
    item = body.get("item")
    identity = item.get("id") if isinstance(item, dict) else item
    return identity if isinstance(identity, str) else ""
