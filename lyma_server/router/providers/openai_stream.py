"""An answer in OpenAI's chat format, put together from its chunks. Pure; knows no SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lyma_server.protocol.events import Usage
from lyma_server.router.chat import TextDelta, ThinkingDelta, ToolCallDelta
from lyma_server.router.providers.assembly import (
    BadPart,
    GrowingCall,
    GrowingText,
    GrowingThinking,
    complete,
    count,
    written,
)

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import ChatEvent, Completed, FinishReason, Origin

FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


class OpenAIAssembler:
    """Feed it chunks; take events. `finish` stays null until the provider gives a reason."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._growing: list[GrowingText | GrowingThinking | GrowingCall] = []
        self._calls: list[GrowingCall] = []
        self._text: GrowingText | None = None
        self._thinking: GrowingThinking | None = None
        self._refused = False
        self.finish: FinishReason | None = None
        self.thinking = False
        self.usage: Usage | None = None

    def feed(self, chunk: Json) -> list[ChatEvent]:
        """Take a chunk. Raises BadPart for an error, or for something that is no chunk."""
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise BadPart(chunk)
        usage = chunk.get("usage")
        choices = chunk.get("choices")
        if usage:
            self.usage = read_usage(usage)
        if not choices:
            if usage or "choices" in chunk:
                return []
            raise BadPart(chunk)
        choice = choices[0]
        events: list[ChatEvent] = []
        delta = choice.get("delta")
        if delta:
            self._grow(delta, events)
        reason = choice.get("finish_reason")
        if reason:
            self._end(reason, chunk)
        if choice.get("usage"):  # Kimi puts it here
            self.usage = read_usage(choice["usage"])
        return events

    def feed_whole(self, body: Json) -> list[ChatEvent]:
        """Take an answer that came in one piece although a stream was asked for. Raises BadPart."""
        if not isinstance(body, dict) or body.get("error") or not body.get("choices"):
            raise BadPart(body)
        first = body["choices"][0]
        message = first.get("message") or first.get("delta") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            raise BadPart(body)
        reason = first.get("finish_reason") or "stop"
        choice = {"delta": message, "finish_reason": reason, "usage": first.get("usage")}
        return self.feed({"choices": [choice], "usage": body.get("usage")})

    def completed(self) -> Completed:
        """The whole answer; only once `finish` is known."""
        finish: FinishReason = "refusal" if self._refused else self.finish or "end_turn"
        return complete(self._origin, self._growing, finish, self.usage)

    def _end(self, reason: str, chunk: Json) -> None:
        if reason == "error":
            raise BadPart(chunk)
        self.finish = FINISH_REASONS.get(reason, "end_turn")

    def _grow(self, delta: dict[str, Json], events: list[ChatEvent]) -> None:
        content = delta.get("content")
        if content:
            self._grow_text(content if isinstance(content, str) else _join_parts(content), events)
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            self._grow_thinking(thought, events)
        calls = delta.get("tool_calls")
        if calls:
            for part in calls:
                self._grow_call(part, events)
        refusal = written(delta.get("refusal"))
        if refusal:
            self._refused = True
            self._grow_text(refusal, [])

    def _grow_text(self, text: str, events: list[ChatEvent]) -> None:
        if self._text is None:
            self._text = GrowingText()
            self._growing.append(self._text)
        self._text.parts.append(text)
        if text:
            events.append(TextDelta(text))

    def _grow_thinking(self, text: str, events: list[ChatEvent]) -> None:
        if self._thinking is None:
            self._thinking = GrowingThinking()
            self._growing.append(self._thinking)
        self._thinking.parts.append(text)
        events.append(ThinkingDelta(text))

    def _grow_call(self, part: dict[str, Json], events: list[ChatEvent]) -> None:
        function = part.get("function") or {}
        call = self._find_call(part.get("index"), part.get("id") or "")
        if not call.name:
            call.name = written(function.get("name"))
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):  # some servers send an object, whole
            arguments = json.dumps(arguments)
        if arguments:
            call.parts.append(arguments)
        events.append(ToolCallDelta(call.index, call.name, arguments))

    def _find_call(self, index: Json, wire_id: str) -> GrowingCall:
        """By index; by a new id where the index is omitted or repeated; else the last one goes on (Qwen sends `id: ""`)."""
        known = next((call for call in self._calls if wire_id and call.wire_id == wire_id), None)
        if isinstance(index, int):
            at_index = next((call for call in reversed(self._calls) if call.index == index), None)
            if at_index is not None and (not wire_id or not at_index.wire_id or at_index.wire_id == wire_id):
                at_index.wire_id = at_index.wire_id or wire_id
                return at_index
            taken = at_index is not None
        else:
            taken = True
            if known is None and not wire_id and self._calls:
                return self._calls[-1]
        if known is not None and taken:
            return known
        call = GrowingCall(len(self._calls) if taken else index, wire_id)
        self._calls.append(call)
        self._growing.append(call)
        return call


def _join_parts(content: Json) -> str:
    """Some servers send text as a list of parts."""
    if not isinstance(content, list):
        return ""
    return "".join(part.get("text") or "" for part in content if isinstance(part, dict))


def read_usage(usage: Json) -> Usage | None:
    """Usage as OpenAI counts it: the input includes what was cached. DeepSeek names the cached part otherwise."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(cached) or count(usage.get("prompt_cache_hit_tokens")) or count(usage.get("cached_tokens")),
    )
