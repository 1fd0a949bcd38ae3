"""Answers in OpenAI's format, with the habits of all who speak it."""

from __future__ import annotations

from typing import Any

import pytest

from lyma_server.protocol.events import Usage
from lyma_server.router.chat import Origin, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolCallDelta
from lyma_server.router.providers.assembly import BadPart
from lyma_server.router.providers.openai_stream import OpenAIAssembler


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call_part(**part: Any) -> dict[str, Any]:
    function = {name: part.pop(name) for name in ("name", "arguments") if name in part}
    return {**part, "function": function}


def feed(*chunks: dict[str, Any]) -> tuple[list[Any], OpenAIAssembler]:
    assembler = OpenAIAssembler(Origin("p", "m"))
    return [event for each in chunks for event in assembler.feed(each)], assembler


def calls_of(assembler: OpenAIAssembler) -> list[tuple[str, Any]]:
    blocks = assembler.completed().message.blocks
    return [(block.name, block.arguments) for block in blocks if isinstance(block, ToolCall)]


def test_text_and_thinking() -> None:
    events, assembler = feed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "a"}),
        chunk({"content": [{"type": "text", "text": "b"}]}),
        chunk({}, "stop"),
    )
    assert events == [ThinkingDelta("hm"), TextDelta("a"), TextDelta("b")]
    assert assembler.completed().message.blocks == (Thinking("hm"), Text("ab"))
    assert assembler.completed().finish == "end_turn"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            [call_part(index=0, id="x", name="read", arguments=""), call_part(index=0, arguments='{"a"'),
             call_part(index=0, arguments=": 1}"), call_part(index=1, id="y", name="list", arguments="{}")],
            id="by index",
        ),
        pytest.param(
            [call_part(index=0, id="x", name="read", arguments='{"a"'), call_part(index=0, id="", arguments=": 1}"),
             call_part(index=1, id="y", name="list", arguments="{}")],
            id="continued with an empty id",
        ),
        pytest.param(
            [call_part(id="x", name="read", arguments='{"a"'), call_part(arguments=": 1}"),
             call_part(id="y", name="list", arguments="{}")],
            id="no index",
        ),
        pytest.param(
            [call_part(index=0, id="x", name="read", arguments='{"a": 1}'),
             call_part(index=0, id="y", name="list", arguments="{}")],
            id="index repeated",
        ),
        pytest.param(
            [call_part(index=0, id="x", name="read", arguments='{"a"'),
             call_part(index=0, id="x", name="read", arguments=": 1}"),
             call_part(index=3, id="y", name="list", arguments={})],
            id="id and name repeated, an object for arguments",
        ),
    ],
)  # fmt: skip
def test_calls_are_put_together(parts: list[dict[str, Any]]) -> None:
    events, assembler = feed(*(chunk({"tool_calls": [part]}) for part in parts), chunk({}, "tool_calls"))
    assert calls_of(assembler) == [("read", {"a": 1}), ("list", {})]
    assert assembler.completed().finish == "tool_calls"
    assert all(isinstance(event, ToolCallDelta) for event in events)
    assert len({event.index for event in events}) == 2


@pytest.mark.parametrize(
    ("written", "arguments"), [("", {}), ("  ", {}), ('{"a": 1}', {"a": 1}), ('{"a": ', None), ("[1]", None)]
)
def test_arguments_are_an_object_or_nothing(written: str, arguments: Any) -> None:
    _, assembler = feed(chunk({"tool_calls": [call_part(index=0, id="x", name="read", arguments=written)]}, "stop"))
    assert calls_of(assembler) == [("read", arguments)]
    assert assembler.completed().finish == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("tool_calls", "end_turn"),
     ("eos", "end_turn")],
)  # fmt: skip
def test_reasons(reason: str, finish: str) -> None:
    _, assembler = feed(chunk({"content": "a"}, reason))
    assert assembler.completed().finish == finish


def test_a_refusal_is_not_shown_as_text() -> None:
    events, assembler = feed(chunk({"refusal": "I cannot"}), chunk({}, "stop"))
    assert events == []
    assert assembler.completed().finish == "refusal"
    assert assembler.completed().message.blocks == (Text("I cannot"),)


USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}},
        {"choices": [{"index": 0, "delta": {}, "usage": {**USAGE, "cached_tokens": 4}}]},
        chunk({}, usage={**USAGE, "prompt_cache_hit_tokens": 4, "prompt_tokens_details": None}),
    ],
)
def test_usage_wherever_it_rides(last: dict[str, Any]) -> None:
    _, assembler = feed(chunk({"content": "a"}, "stop"), last)
    assert assembler.completed().usage == Usage(input_tokens=10, output_tokens=5, cached_tokens=4)


def test_missing_usage_is_estimated_and_marked() -> None:
    _, assembler = feed(chunk({"content": "a" * 41}, "stop"))
    assert assembler.completed().usage == Usage(output_tokens=11, estimated=True)


@pytest.mark.parametrize(
    "bad",
    [
        {"error": {"message": "boom"}},
        {"code": "InternalError", "message": "boom"},
        {"error": {"code": "server_error"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]},
        chunk({"content": ""}, "error"),
        ["no chunk"],
        None,
    ],
)
def test_errors_in_the_stream_are_errors(bad: Any) -> None:
    with pytest.raises(BadPart) as caught:
        feed(bad)
    assert caught.value.body == bad


def test_a_whole_answer_counts_although_a_stream_was_asked_for() -> None:
    assembler = OpenAIAssembler(Origin("p", "m"))
    message = {"role": "assistant", "content": "a", "tool_calls": [call_part(id="x", name="read", arguments="{}")]}
    events = assembler.feed_whole({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": USAGE})
    assert events == [TextDelta("a"), ToolCallDelta(0, "read", "{}")]
    assert assembler.completed().usage.input_tokens == 10


@pytest.mark.parametrize("bad", [{}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"error": "x"}, "text"])
def test_what_is_no_answer_is_refused(bad: Any) -> None:
    with pytest.raises(BadPart):
        OpenAIAssembler(Origin("p", "m")).feed_whole(bad)


def test_ids_are_our_own_and_unique() -> None:
    parts = [call_part(index=n, id="functions.read:0", name="read", arguments="{}") for n in range(2)]
    _, assembler = feed(chunk({"tool_calls": parts}, "stop"))
    ids = [block.id for block in assembler.completed().message.blocks if isinstance(block, ToolCall)]
    assert len(set(ids)) == 2
    assert all(identity.replace("_", "").isalnum() for identity in ids)
