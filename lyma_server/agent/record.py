"""The lines of a session file.

A file begins with a `session` record; each turn adds a `turn`, then `message` records (the conversation as the model knows
it), `event` records (what a person was shown) and `edit` records (how to undo them). An edit that was recorded and then not
made is taken back by a `dropped` record; a turn whose edits were undone has an `undone` record. `type` always comes first,
so that a reader need not parse the lines it does not want.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from lyma_server.router.chat import Block, Message, Origin, Text, Thinking, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import UnionType

    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import EventBody

VERSION = 1
RecordType: TypeAlias = Literal["session", "turn", "message", "event", "edit", "dropped", "undone"]
Shape: TypeAlias = "dict[str, type | UnionType]"
BLOCKS: dict[str, type[Block]] = {"text": Text, "thinking": Thinking, "tool_call": ToolCall, "tool_result": ToolResult}
EDIT: Shape = {"turn": str, "path": str, "before": str | None, "after": str | None, "mode": int | None}
SHAPES: dict[RecordType, Shape] = {
    "turn": {"turn": str},
    "event": {"turn": str, "body": dict},
    "edit": EDIT,
    "dropped": EDIT,
    "undone": {"turn": str},
}
"""What each type of record must have for its readers."""
KINDS = {cls: kind for kind, cls in BLOCKS.items()}


@attrs.frozen
class EditRecord:
    """What a turn did to one file. `before` and `after` name kept bytes by their SHA-256; null: there was no file."""

    turn: str
    path: str
    before: str | None
    after: str | None
    mode: int | None = None


def session_record(
    session: str, *, created: str, root: str | None, title: str, parent: str | None = None
) -> dict[str, Json]:
    head = {"type": "session", "version": VERSION, "session": session}
    return {**head, "created": created, "root": root, "title": title, "parent": parent}


def turn_record(turn: str, at: str) -> dict[str, Json]:
    return {"type": "turn", "turn": turn, "at": at}


def event_record(turn: str, body: EventBody) -> dict[str, Json]:
    from lyma_server.protocol.convert import unstructure

    return {"type": "event", "turn": turn, "body": unstructure(body)}


def edit_record(edit: EditRecord) -> dict[str, Json]:
    return {"type": "edit", **attrs.asdict(edit)}


def dropped_record(edit: EditRecord) -> dict[str, Json]:
    """The edit was not made after all."""
    return {"type": "dropped", **attrs.asdict(edit)}


def undone_record(turn: str) -> dict[str, Json]:
    return {"type": "undone", "turn": turn}


def edits_in(data: bytes) -> Iterator[EditRecord]:
    """The edits that a session's file tells of. One that cannot be understood is left out."""
    dropped = list(_edits(data, "dropped"))
    for edit in _edits(data, "edit"):
        if edit in dropped:
            dropped.remove(edit)
        else:
            yield edit


def undone_in(data: bytes) -> frozenset[str]:
    """The turns whose edits were undone."""
    return frozenset(str(record.get("turn")) for record in records(data, "undone"))


def _edits(data: bytes, kind: Literal["edit", "dropped"]) -> Iterator[EditRecord]:
    for record in records(data, kind):
        with suppress(TypeError):
            yield EditRecord(**{name: value for name, value in record.items() if name != "type"})


def message_record(message: Message) -> dict[str, Json]:
    blocks = [{"kind": KINDS[type(block)], **attrs.asdict(block)} for block in message.blocks]
    origin = message.origin and attrs.asdict(message.origin)
    return {"type": "message", "role": message.role, "origin": origin, "blocks": blocks}


def message_of(record: Json) -> Message:
    """The message that a record holds. Raises KeyError, TypeError or AttributeError where it holds none."""
    blocks = tuple(BLOCKS[block.pop("kind")](**block) for block in record["blocks"])
    return Message(record["role"], blocks, record["origin"] and Origin(**record["origin"]))


def line(record: dict[str, Json]) -> bytes:
    """A record as one line. Half surrogate pairs survive: they may come from the name of a file."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def records(data: bytes, wanted: RecordType) -> Iterator[Json]:
    """The records of one type. A line that was cut short, as by a crash, or damaged is left out."""
    start = b'{"type":"%s"' % wanted.encode()
    for each in data.split(b"\n"):
        if each.startswith(start) and (record := _record(each, SHAPES.get(wanted, {}))) is not None:
            yield record


def _record(text: bytes, shape: Shape) -> Json:
    """The record of one line; null where it has not what is read of it."""
    with suppress(ValueError, RecursionError):
        record = json.loads(text)
        if all(isinstance(record.get(name), kind) for name, kind in shape.items()):
            return record
    return None
