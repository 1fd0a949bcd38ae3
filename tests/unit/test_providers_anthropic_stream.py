"""Answers in Anthropic's format."""

from __future__ import annotations

from typing import Any

import pytest

from lyma_server.protocol.events import Usage
from lyma_server.router.chat import Origin, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolCallDelta
from lyma_server.router.providers.anthropic_stream import AnthropicAssembler
from lyma_server.router.providers.assembly import BadPart


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def feed(*events: dict[str, Any]) -> tuple[list[Any], AnthropicAssembler]:
    assembler = AnthropicAssembler(Origin("p", "m"))
    return [event for each in events for event in assembler.feed(each)], assembler


def test_blocks_of_every_kind() -> None:
    events, assembler = feed(
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="sig"),
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        start(1, type="redacted_thinking", data="xyz"),
        start(2, type="text", text=""),
        delta(2, "text_delta", text="a"),
        start(3, type="tool_use", id="toolu_1", name="read", input={}),
        delta(3, "input_json_delta", partial_json='{"a":'),
        delta(3, "input_json_delta", partial_json=" 1}"),
        end("tool_use", output_tokens=9),
        {"type": "message_stop"},
    )
    shown = [ToolCallDelta(0, "read", ""), ToolCallDelta(0, "read", '{"a":'), ToolCallDelta(0, "read", " 1}")]
    assert events == [ThinkingDelta("hm"), TextDelta("a"), *shown]
    thought, hidden, text, call = assembler.completed().message.blocks
    assert (thought, hidden, text) == (Thinking("hm", "sig"), Thinking("", "xyz", True), Text("a"))
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("read", {"a": 1})
    assert assembler.completed().finish == "tool_calls"
    assert assembler.thinking


def test_usage_is_cumulative_and_counts_what_was_cached() -> None:
    first = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    _, assembler = feed(
        {"type": "message_start", "message": {"usage": first}},
        start(0, type="text", text="a"),
        end("end_turn", output_tokens=4),
        end("end_turn", output_tokens=9),
    )
    assert assembler.completed().usage == Usage(input_tokens=10, output_tokens=9, cached_tokens=5)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("end_turn", "end_turn"), ("stop_sequence", "end_turn"), ("max_tokens", "max_tokens"), ("refusal", "refusal"),
     ("model_context_window_exceeded", "max_tokens"), ("tool_use", "end_turn"), ("new", "end_turn")],
)  # fmt: skip
def test_reasons(reason: str, finish: str) -> None:
    _, assembler = feed(start(0, type="text", text="a"), end(reason))
    assert assembler.completed().finish == finish


def test_a_delta_whose_block_never_began_is_text_all_the_same() -> None:
    events, assembler = feed(delta(0, "text_delta", text="a"), end("end_turn"))
    assert events == [TextDelta("a")]
    assert assembler.completed().message.blocks == (Text("a"),)


def test_events_that_are_not_known_are_passed_over() -> None:
    assert feed({"type": "future_event"}, delta(0, "future_delta", x=1), start(0, type="future_block"))[0] == []


@pytest.mark.parametrize(
    "bad",
    [{"type": "error", "error": {"type": "overloaded_error"}}, {"error": {"message": "x"}}, {"message": "x"}, "text"],
)
def test_errors_in_the_stream_are_errors(bad: Any) -> None:
    with pytest.raises(BadPart):
        feed(bad)


def test_a_whole_message_counts_although_a_stream_was_asked_for() -> None:
    assembler = AnthropicAssembler(Origin("p", "m"))
    content = [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "read", "input": {"b": 1}}]
    body = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"output_tokens": 2}}
    assert assembler.feed_whole(body) == [TextDelta("a"), ToolCallDelta(0, "read", '{"b": 1}')]
    assert assembler.completed().finish == "tool_calls"
    assert assembler.completed().usage.output_tokens == 2


@pytest.mark.parametrize("bad", [{}, {"type": "message"}, {"type": "error"}, [], None])
def test_what_is_no_message_is_refused(bad: Any) -> None:
    with pytest.raises(BadPart):
        AnthropicAssembler(Origin("p", "m")).feed_whole(bad)
