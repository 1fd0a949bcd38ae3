"""Makes items of a streamed answer.

Pure: chat events in, event bodies out. A run of blocks of one kind is one item. The completed answer is authoritative;
what was streamed is only matched to it.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from lyma_server.agent.texts import map_texts, whole
from lyma_server.protocol.events import ItemCompleted, ItemDelta, ItemDiscarded, ItemStarted, Notice
from lyma_server.protocol.items import Item, TextItem, ThinkingItem, ToolCallItem
from lyma_server.router.chat import (
    Block,
    Completed,
    Remark,
    Restarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lyma_server.protocol.events import EventBody
    from lyma_server.router.chat import ChatEvent

Kind: TypeAlias = Literal["text", "thinking", "tool_call"]
SPOKEN: dict[Kind, type[TextItem | ThinkingItem]] = {"text": TextItem, "thinking": ThinkingItem}


@attrs.define
class Growing:
    """An item that has started. `index` is a tool call's place among the calls."""

    id: str
    kind: Kind
    parts: list[str] = attrs.field(factory=list)
    index: int = -1

    @property
    def text(self) -> str:
        return "".join(self.parts)


@attrs.frozen
class Run:
    """Blocks of one kind that stand together, or one tool call."""

    kind: Kind
    text: str = ""
    call: ToolCall | None = None


class Assembler:
    """The items of one answer. `new_id` names them; `answer` is the answer once it is whole, with the items' ids as the
    ids of its tool calls; `begun` tells whether anything came at all.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._growing: list[Growing] = []
        self.answer: Completed | None = None
        self.begun = False

    @property
    def text(self) -> str:
        """What has been said to the person so far."""
        return "".join(item.text for item in self._growing if item.kind == "text")

    def feed(self, event: ChatEvent) -> list[EventBody]:
        """What to tell about one event of the chat."""
        self.begun = self.begun or not isinstance(event, Remark)
        match event:
            case TextDelta():
                return self._speak("text", event.text)
            case ThinkingDelta():
                return self._speak("thinking", event.text)
            case ToolCallDelta():
                return self._call(event)
            case Remark():
                return [Notice(text=event.text, level="warning")]
            case Restarted():
                return self.discard(event.reason)
            case Completed():
                return self._complete(event)

    def discard(self, reason: str) -> list[EventBody]:
        """Give up every item that has started and is not complete."""
        given_up, self._growing = self._growing, []
        return [ItemDiscarded(item=item.id, reason=reason) for item in given_up]

    def settle(self, reason: str) -> list[EventBody]:
        """Complete the text as it is, and give up the rest."""
        spoken = [item for item in self._growing if item.kind == "text"]
        self._growing = [item for item in self._growing if item.kind != "text"]
        return [ItemCompleted(item=TextItem(id=item.id, text=item.text)) for item in spoken] + self.discard(reason)

    def _speak(self, kind: Kind, text: str) -> list[EventBody]:
        text = whole(text)
        if not text:
            return []
        last = self._growing[-1] if self._growing else None
        started: list[EventBody] = []
        if last is None or last.kind != kind:
            last = Growing(self._new_id(), kind)
            self._growing.append(last)
            started = [ItemStarted(item=SPOKEN[kind](id=last.id))]
        last.parts.append(text)
        return [*started, ItemDelta(item=last.id, text=text)]

    def _call(self, event: ToolCallDelta) -> list[EventBody]:
        """Only its name is told: half of an argument is of no use to anybody."""
        if any(item.index == event.index for item in self._growing):
            return []
        item = Growing(self._new_id(), "tool_call", index=event.index)
        self._growing.append(item)
        return [ItemStarted(item=ToolCallItem(id=item.id, name=whole(event.name)))]

    def _complete(self, event: Completed) -> list[EventBody]:
        message = map_texts(event.message, whole)
        matched, left = self._match(message.blocks)
        bodies = [body for item, run in matched for body in _complete(item, run)]
        self._growing = left
        bodies += self.discard("superseded")
        ids = iter([item.id for item, run in matched if run.call])
        blocks = tuple(attrs.evolve(b, id=next(ids)) if isinstance(b, ToolCall) else b for b in message.blocks)
        self.answer = attrs.evolve(event, message=attrs.evolve(message, blocks=blocks))
        return bodies

    def _match(self, blocks: Iterable[Block]) -> tuple[list[tuple[Growing | NewItem, Run]], list[Growing]]:
        """Give each run of the answer the item that was streamed for it, the first of its kind, or a new one."""
        left = sorted(self._growing, key=lambda item: item.index)
        matched: list[tuple[Growing | NewItem, Run]] = []
        for run in runs(blocks):
            item = next((item for item in left if item.kind == run.kind), None)
            if item is not None:
                left.remove(item)
            matched.append((item or NewItem(self._new_id()), run))
        return matched, left


@attrs.frozen
class NewItem:
    """An item of which nothing was streamed."""

    id: str


def runs(blocks: Iterable[Block]) -> Iterator[Run]:
    """The runs of an answer; what has no text (thinking that the provider hides) makes none."""
    for key, group in groupby(blocks, key=lambda block: id(block) if isinstance(block, ToolCall) else type(block)):
        members = tuple(group)
        if isinstance(members[0], ToolCall):
            yield Run("tool_call", call=members[0])
        elif text := "".join(b.text for b in members if isinstance(b, (Text, Thinking))):
            yield Run("text" if key is Text else "thinking", text)


def _complete(item: Growing | NewItem, run: Run) -> Iterator[EventBody]:
    """Tell the whole item, and before it what a listener to deltas would miss."""
    if isinstance(item, NewItem):
        yield ItemStarted(item=_item(item.id, Run(run.kind, call=run.call and attrs.evolve(run.call, arguments=None))))
    said = "" if isinstance(item, NewItem) else item.text
    if run.text.startswith(said) and (rest := run.text[len(said) :]):
        yield ItemDelta(item=item.id, text=rest)
    yield ItemCompleted(item=_item(item.id, run))


def _item(identity: str, run: Run) -> Item:
    if run.call is not None:
        return ToolCallItem(id=identity, name=run.call.name, arguments=run.call.arguments or {})
    return SPOKEN[run.kind](id=identity, text=run.text)
