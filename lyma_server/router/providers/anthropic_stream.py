"""An answer in Anthropic's message format, put together from its events. Pure; knows no SDK."""

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
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class AnthropicAssembler:
    """Feed it the data of events; take events. `finish` stays null until there is a reason; `thinking` is set when a thought begins."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._growing: dict[int, GrowingText | GrowingThinking | GrowingCall] = {}
        self._calls = 0
        self._counts: dict[str, int] = {}
        self.finish: FinishReason | None = None
        self.thinking = False

    def feed(self, data: Json) -> list[ChatEvent]:
        """Take an event's data. Raises BadPart for an error, or for something that is no event of a message."""
        if not isinstance(data, dict):
            raise BadPart(data)
        kind = data.get("type")
        if kind == "content_block_delta":
            return self._grow(data)
        if kind == "content_block_start":
            return self._begin(data)
        if kind == "message_delta":
            self._end(data)
        elif kind == "message_start":
            self._count((data.get("message") or {}).get("usage"))
        elif kind == "error" or "error" in data or (kind is None and "message" in data):
            raise BadPart(data)
        return []

    def feed_whole(self, body: Json) -> list[ChatEvent]:
        """Take an answer that came in one piece although a stream was asked for. Raises BadPart."""
        if not isinstance(body, dict) or body.get("type") != "message" or not isinstance(body.get("content"), list):
            raise BadPart(body)
        events: list[ChatEvent] = []
        for index, block in enumerate(body["content"]):
            events += self._begin({"index": index, "content_block": block})
        self._end({"delta": {"stop_reason": body.get("stop_reason") or "end_turn"}, "usage": body.get("usage")})
        return events

    def completed(self) -> Completed:
        """The whole answer; only once `finish` is known."""
        growing = [self._growing[index] for index in sorted(self._growing)]
        return complete(self._origin, growing, self.finish or "end_turn", self._usage())

    def _begin(self, data: dict[str, Json]) -> list[ChatEvent]:
        block = data.get("content_block") or {}
        index = data.get("index", len(self._growing))
        kind = block.get("type")
        if kind == "text":
            return self._begin_text(index, written(block.get("text")))
        if kind == "thinking":
            self.thinking = True
            self._growing[index] = thinking = GrowingThinking(signature=written(block.get("signature")) or None)
            return _grow_thinking(thinking, written(block.get("thinking")))
        if kind == "redacted_thinking":
            self.thinking = True
            self._growing[index] = GrowingThinking(signature=written(block.get("data")), redacted=True)
        elif kind == "tool_use":
            return self._begin_call(index, block)
        return []

    def _begin_text(self, index: int, text: str) -> list[ChatEvent]:
        self._growing[index] = GrowingText([text])
        return [TextDelta(text)] if text else []

    def _begin_call(self, index: int, block: dict[str, Json]) -> list[ChatEvent]:
        call = GrowingCall(self._calls, block.get("id") or "", written(block.get("name")))
        self._calls += 1
        self._growing[index] = call
        whole = block.get("input")
        if whole:  # a server that does not stream arguments
            call.parts.append(json.dumps(whole))
        return [ToolCallDelta(call.index, call.name, "".join(call.parts))]

    def _grow(self, data: dict[str, Json]) -> list[ChatEvent]:
        part = self._growing.get(data.get("index", 0))
        delta = data.get("delta") or {}
        kind = delta.get("type")
        if kind == "text_delta":
            text = written(delta.get("text"))
            if not text:
                return []
            if not isinstance(part, GrowingText):
                return self._begin_text(data.get("index", 0), text)
            part.parts.append(text)
            return [TextDelta(text)]
        if kind == "input_json_delta" and isinstance(part, GrowingCall):
            return _grow_call(part, written(delta.get("partial_json")))
        if kind == "thinking_delta" and isinstance(part, GrowingThinking):
            return _grow_thinking(part, written(delta.get("thinking")))
        if kind == "signature_delta" and isinstance(part, GrowingThinking):
            part.signature = (part.signature or "") + written(delta.get("signature"))
        return []

    def _end(self, data: dict[str, Json]) -> None:
        reason = (data.get("delta") or {}).get("stop_reason")
        if reason:
            self.finish = FINISH_REASONS.get(reason, "end_turn")
        self._count(data.get("usage"))

    def _count(self, usage: Json) -> None:
        """Counts are cumulative: the last one said holds."""
        if isinstance(usage, dict):
            self._counts |= {name: count(value) for name, value in usage.items() if isinstance(value, int)}

    def _usage(self) -> Usage | None:
        if not self._counts:
            return None
        cached = self._counts.get("cache_read_input_tokens", 0)
        written = self._counts.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=self._counts.get("input_tokens", 0) + cached + written,
            output_tokens=self._counts.get("output_tokens", 0),
            cached_tokens=cached,
        )


def _grow_call(call: GrowingCall, text: str) -> list[ChatEvent]:
    if not text:
        return []
    call.parts.append(text)
    return [ToolCallDelta(call.index, call.name, text)]


def _grow_thinking(thinking: GrowingThinking, text: str) -> list[ChatEvent]:
    if not text:
        return []
    thinking.parts.append(text)
    return [ThinkingDelta(text)]
