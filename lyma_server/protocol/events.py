"""What happens in a turn, in order. `seq` starts at 1 in each turn and has no gaps; nothing follows `turn.completed`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from lyma_server.protocol.base import Json, message
from lyma_server.protocol.items import Item

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_steps", "budget", "refusal", "cancelled", "interrupted"]
RouteNext: TypeAlias = Literal["done", "rotate", "fallback", "retry", "shrink", "repair", "wait", "fail"]


@message
class Usage:
    """Tokens and money. `cost_micros` is integer USD micros, absent where a price is unknown; `estimated` where a
    provider did not say.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_micros: int | None = None
    estimated: bool = False


@message
class Attempt:
    """One attempt of a model call. `key` is masked, absent where the provider needs none; `class_` is `ok` or what kind of
    failure it was; `ms` is how long it took.
    """

    provider: str
    model: str
    class_: str
    next: RouteNext
    ms: int
    key: str | None = None
    status: int | None = None
    retry_after_ms: int | None = None


@message
class EditSummary:
    """A file that the turn changed."""

    path: str
    uri: str
    added: int
    removed: int


@message
class SentPart:
    """One part of what was sent along with a prompt: where it is from and how large it is (characters)."""

    what: str
    characters: int
    uri: str | None = None


@message
class TurnStarted:
    """The first of a turn; `sent` says what went along with the prompt."""

    type: Literal["turn.started"] = "turn.started"
    prompt: str
    sent: tuple[SentPart, ...] = ()


@message
class ItemStarted:
    """An item begins, perhaps empty."""

    type: Literal["item.started"] = "item.started"
    item: Item


@message
class ItemDelta:
    """More text of the item whose id is `item`."""

    type: Literal["item.delta"] = "item.delta"
    item: str
    text: str


@message
class ItemCompleted:
    """The item, whole; it stands even where its deltas said otherwise."""

    type: Literal["item.completed"] = "item.completed"
    item: Item


@message
class ItemDiscarded:
    """The item whose id is `item` broke off and will be asked again: show it as void."""

    type: Literal["item.discarded"] = "item.discarded"
    item: str
    reason: str


@message
class Route:
    """One attempt of a model call, as an event; the fields are those of an attempt."""

    type: Literal["route"] = "route"
    provider: str
    model: str
    class_: str
    next: RouteNext
    ms: int
    key: str | None = None
    status: int | None = None
    retry_after_ms: int | None = None


@message
class ApprovalRequested:
    """A person is asked about the agent with this hash; `path` names the runs above it."""

    type: Literal["approval.requested"] = "approval.requested"
    hash: str
    title: str
    path: tuple[str, ...] = ()


@message
class ApprovalResolved:
    """The question about this hash is settled."""

    type: Literal["approval.resolved"] = "approval.resolved"
    hash: str
    state: Literal["approved", "rejected", "expired", "withdrawn"]


@message
class UsageReported:
    """Usage of the turn so far."""

    type: Literal["usage"] = "usage"
    usage: Usage


@message
class Notice:
    """A sentence for the person, from Lyma and not from the model."""

    type: Literal["notice"] = "notice"
    text: str
    level: Literal["info", "warning"] = "info"
    data: dict[str, Json] = attrs.field(factory=dict)


@message
class TurnCompleted:
    """The last of a turn."""

    type: Literal["turn.completed"] = "turn.completed"
    stop_reason: StopReason
    usage: Usage = Usage()


EventBody: TypeAlias = (
    TurnStarted
    | ItemStarted
    | ItemDelta
    | ItemCompleted
    | ItemDiscarded
    | Route
    | ApprovalRequested
    | ApprovalResolved
    | UsageReported
    | Notice
    | TurnCompleted
)


@message
class Event:
    """An event with its place. On the wire the fields of its body stand beside these: `{session, turn, seq, type, …}`."""

    session: str
    turn: str
    seq: int
    body: EventBody
    replay: bool = False
