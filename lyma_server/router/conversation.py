"""A neutral conversation, made such that either wire format can take it. Pure.

Both formats refuse a request for small breaks of form, and a conversation that wandered between providers, was cancelled
or was cut short has many: calls without results, results without calls, ids that repeat, two messages of one side in a
row, thoughts of another model. `arrange` mends them all; the requests of each format are then a plain translation.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from lyma_server.router.chat import Message, Text, Thinking, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import Origin

NO_RESULT = "There is no result: the call was interrupted."
NO_OUTPUT = "(no output)"
OPENING = "(The conversation goes on.)"
CONTINUE = "Continue."


@frozen
class Said:
    """What the user's side sends: results of the calls just before, all of them and first; then texts."""

    results: tuple[ToolResult, ...] = ()
    texts: tuple[str, ...] = ()


@frozen
class Answered:
    """What the model's side said: thoughts and texts in their order, then calls."""

    parts: tuple[Text | Thinking, ...] = ()
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))


Turn: TypeAlias = Said | Answered


def arrange(messages: Iterable[Message], thinker: Origin | None) -> tuple[Turn, ...]:
    """Strictly alternating turns that begin and end with the user's.

    Every call has a well-formed id that occurs once and exactly one result, in the turn right after it. Blank texts are
    gone. Thinking is kept only where `thinker`, the model that will read it, has thought it; null keeps none.
    """
    arranger = _Arranger(thinker)
    for message in messages:
        arranger.take(message)
    return arranger.turns()


class _Arranger:
    def __init__(self, thinker: Origin | None) -> None:
        self._thinker = thinker
        self._turns: list[Turn] = []
        self._parts: list[Text | Thinking] = []
        self._calls: list[ToolCall] = []
        self._results: dict[str, ToolResult] = {}
        self._texts: list[str] = []
        self._ids: dict[str, str] = {}
        self._used: set[str] = set()

    def take(self, message: Message) -> None:
        if message.role == "assistant":
            self._take_answer(message)
        else:
            self._take_said(message)

    def turns(self) -> tuple[Turn, ...]:
        if self._answering:
            self._close_answer()
        if not self._results and not self._texts and not (self._turns and isinstance(self._turns[-1], Said)):
            self._texts.append(CONTINUE)
        self._close_said()
        return tuple(self._turns)

    @property
    def _answering(self) -> bool:
        return bool(self._parts or self._calls)

    def _take_answer(self, message: Message) -> None:
        parts = [part for part in message.blocks if self._worth_sending(part, message.origin)]
        calls = [block for block in message.blocks if isinstance(block, ToolCall)]
        if not calls and not any(isinstance(part, Text) for part in parts):
            return  # nothing, or a thought that led nowhere
        if self._calls:  # the calls before it were never answered
            self._close_answer()
        self._close_said()
        if not self._turns:
            self._turns.append(Said(texts=(OPENING,)))
        self._parts += [part for part in parts if isinstance(part, Text | Thinking)]
        for call in calls:
            self._take_call(call)

    def _worth_sending(self, block: object, origin: Origin | None) -> bool:
        if isinstance(block, Thinking):
            return self._thinker is not None and origin == self._thinker
        return isinstance(block, Text) and bool(block.text.strip())

    def _take_call(self, call: ToolCall) -> None:
        wire_id = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id)[:40] or "call"
        stem, number = wire_id[:32], 1
        while wire_id in self._used:
            number += 1
            wire_id = f"{stem}_{number}"
        self._used.add(wire_id)
        self._ids[call.id] = wire_id
        self._calls.append(ToolCall(wire_id, call.name, call.arguments, call.raw))

    def _take_said(self, message: Message) -> None:
        if self._answering:
            self._close_answer()
        for block in message.blocks:
            if isinstance(block, ToolResult):
                self._take_result(block)
            elif isinstance(block, Text) and block.text.strip():
                self._texts.append(block.text)

    def _take_result(self, result: ToolResult) -> None:
        wire_id = self._ids.get(result.call, "")
        waiting = self._results.get(wire_id)
        if waiting is not None and waiting.text is NO_RESULT:
            self._results[wire_id] = ToolResult(wire_id, result.text or NO_OUTPUT, result.is_error)
        elif result.text.strip():  # too late, twice, or for a call that is not there: still worth reading
            self._texts.append(f"(Result of an earlier tool call)\n{result.text}")

    def _close_answer(self) -> None:
        self._turns.append(Answered(tuple(self._parts), tuple(self._calls)))
        self._results = {call.id: ToolResult(call.id, NO_RESULT, is_error=True) for call in self._calls}
        self._parts, self._calls = [], []

    def _close_said(self) -> None:
        """End the user's turn; one that says nothing between two answers lets them grow together."""
        if self._results or self._texts:
            self._turns.append(Said(tuple(self._results.values()), tuple(self._texts)))
            self._results, self._texts = {}, []
        elif self._turns and not self._answering and isinstance(previous := self._turns[-1], Answered):
            self._turns.pop()
            self._parts = list(previous.parts)


def written_arguments(call: ToolCall) -> dict[str, Json]:
    """The arguments as an object. What was no JSON is shown to the model as what it wrote."""
    return {"invalid_json": call.raw} if call.arguments is None else call.arguments


def tool_name(name: str) -> str:
    """A name that both formats take: `^[a-zA-Z0-9_-]{1,64}$`."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown_tool"


def in_plain_words(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same conversation without tools, for a model that knows none: calls and results become text."""
    return tuple(
        Message(message.role, tuple(_in_plain_words(block) for block in message.blocks), message.origin)
        for message in messages
    )


def _in_plain_words(block: object) -> Text | Thinking:
    if isinstance(block, ToolCall):
        return Text(f"\n(I used {block.name} with {json.dumps(written_arguments(block), ensure_ascii=False)})")
    if isinstance(block, ToolResult):
        return Text(f"(It answered)\n{block.text or NO_OUTPUT}")
    return block if isinstance(block, Text | Thinking) else Text("")
