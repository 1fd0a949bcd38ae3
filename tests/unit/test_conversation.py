"""Any conversation, however broken, becomes a request that both wire formats take. Their rules are written out here."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.router.chat import (
    ChatRequest,
    Message,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from lyma_server.router.conversation import NO_RESULT, Answered, Said, arrange
from lyma_server.router.providers import anthropic_request, openai_request
from lyma_server.router.providers.base import Call, Key, Provider

if TYPE_CHECKING:
    from lyma_server.router.chat import Block

HERE, ELSEWHERE = Origin("here", "m"), Origin("elsewhere", "m")
ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def call_of(messages: tuple[Message, ...], name: str = "here", url: str = "http://127.0.0.1:1/v1", **more: Any) -> Call:
    request = ChatRequest("Be brief.", messages, "s", **more.pop("request", {}))
    return Call(request, Provider(name, more.pop("api", "openai"), url, "m"), Key(), "m", **more)


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def said(*blocks: Block, origin: Origin = HERE) -> Message:
    return Message("assistant", blocks, origin)


texts = st.sampled_from(["", " ", "\n", "words", "more words\n", "\u2028 odd"])
ids = st.sampled_from(["a", "b", "functions.read:0", "", "x" * 80, "ä"])
arguments = st.one_of(st.none(), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2))
calls = st.builds(ToolCall, ids, st.sampled_from(["read", "", "a b", "n" * 90]), arguments, st.just("{bro"))
thoughts = st.builds(Thinking, texts, st.sampled_from([None, "sig"]), st.booleans())
results = st.builds(ToolResult, ids, texts, st.booleans())
answers = st.builds(
    Message,
    st.just("assistant"),
    st.lists(st.one_of(st.builds(Text, texts), thoughts, calls), max_size=5).map(tuple),
    st.sampled_from([HERE, ELSEWHERE, None]),
)
questions = st.builds(
    Message, st.just("user"), st.lists(st.one_of(st.builds(Text, texts), results), max_size=5).map(tuple)
)
conversations = st.lists(st.one_of(answers, questions), max_size=8).map(tuple)


def check_anthropic(body: dict[str, Any]) -> None:
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["user" if number % 2 == 0 else "assistant" for number in range(len(roles))]
    assert roles[-1:] == ["user"]
    waiting: list[str] = []
    used: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks
        check_anthropic_blocks(message["role"], blocks)
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert answered == (waiting if message["role"] == "user" else [])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        used += waiting
    assert len(set(used)) == len(used)
    assert bool(body.get("tools")) >= bool(used)


def check_anthropic_blocks(role: str, blocks: list[dict[str, Any]]) -> None:
    kinds = [block["type"] for block in blocks]
    last = {"user": "text", "assistant": "tool_use"}[role]
    first = {"user": {"tool_result"}, "assistant": {"text", "thinking", "redacted_thinking"}}[role]
    assert all(kind in first for kind in kinds[: len(kinds) - kinds.count(last)]) or last == "text"
    assert kinds == sorted(kinds, key=lambda kind: kind == last)
    for block in blocks:
        if block["type"] == "text":
            assert block["text"].strip()
        elif block["type"] == "thinking":
            assert block["signature"]
        elif block["type"] == "tool_use":
            assert ID.match(block["id"])
            assert ID.match(block["name"])
            assert isinstance(block["input"], dict)


def check_openai(body: dict[str, Any]) -> None:
    messages = body["messages"]
    assert messages[0] == {"role": "system", "content": "Be brief."}
    waiting: list[str] = []
    used: list[str] = []
    previous = "system"
    for message in messages[1:]:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"]
        else:
            assert not waiting
            assert role != previous
        if role == "user":
            assert message["content"].strip()
        if role == "assistant":
            waiting = check_openai_answer(message)
            used += waiting
        previous = role
    assert not waiting
    assert previous in {"user", "tool"}
    assert messages[1]["role"] == "user"
    assert len(set(used)) == len(used)


def check_openai_answer(message: dict[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    assert calls is None or calls
    assert message["content"].strip() or calls or message.get("reasoning_content")
    for call in calls or ():
        assert ID.match(call["function"]["name"])
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
    return [call["id"] for call in calls or ()]


@settings(max_examples=60)
@given(conversations, st.sampled_from(["faithful", "plain"]))
def test_any_conversation_is_valid_for_anthropic(messages: tuple[Message, ...], history: Any) -> None:
    check_anthropic(anthropic_request.build_body(call_of(messages, api="anthropic", history=history)))


@settings(max_examples=60)
@given(conversations, st.sampled_from(["here", "deepseek", "kimi", "openai"]))
def test_any_conversation_is_valid_for_openai(messages: tuple[Message, ...], name: str) -> None:
    check_openai(openai_request.build_body(call_of(messages, name)))


@settings(max_examples=60)
@given(conversations)
def test_deepseek_and_kimi_are_given_a_thought_with_every_call(messages: tuple[Message, ...]) -> None:
    for name in ("deepseek", "kimi"):
        for message in openai_request.build_body(call_of(messages, name))["messages"]:
            assert bool(message.get("reasoning_content")) == bool(message.get("tool_calls"))


@settings(max_examples=60)
@given(conversations)
def test_no_text_of_either_side_is_lost_or_invented(messages: tuple[Message, ...]) -> None:
    turns = arrange(messages, None)
    kept = "".join(turn.text for turn in turns if isinstance(turn, Answered))
    spoken = [block.text for message in messages if message.role == "assistant" for block in message.blocks
              if isinstance(block, Text) and block.text.strip()]  # fmt: skip
    assert kept == "".join(spoken)


def test_thinking_goes_back_only_to_the_model_that_thought_it() -> None:
    mine, theirs = Thinking("mine", "sig"), Thinking("theirs", "sig")
    messages = (user(Text("q")), said(mine, Text("a")), user(Text("r")), said(theirs, Text("b"), origin=ELSEWHERE))
    body = anthropic_request.build_body(call_of(messages, api="anthropic"))
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "mine", "signature": "sig"}
    assert "theirs" not in json.dumps(body)
    assert "mine" not in json.dumps(anthropic_request.build_body(call_of(messages, api="anthropic", history="plain")))


def test_a_stored_thought_is_given_back_to_deepseek_and_a_space_where_there_is_none() -> None:
    stored = said(Thinking("deep"), ToolCall("a", "read", {}), origin=Origin("deepseek", "m"))
    foreign = said(Thinking("other"), ToolCall("b", "read", {}), origin=ELSEWHERE)
    messages = (user(Text("q")), stored, user(ToolResult("a", "1")), foreign, user(ToolResult("b", "2")))
    sent = openai_request.build_body(call_of(messages, "deepseek"))["messages"]
    assert [message["reasoning_content"] for message in sent if message["role"] == "assistant"] == ["deep", " "]


def test_kimi_sees_ids_in_its_own_form_and_they_match() -> None:
    messages = (user(Text("q")), said(ToolCall("a", "read", {}), ToolCall("b", "list", {})), user(ToolResult("b", "2")))
    sent = openai_request.build_body(call_of(messages, "mine", "https://api.moonshot.cn/v1"))["messages"]
    assert [call["id"] for call in sent[2]["tool_calls"]] == ["functions.read:0", "functions.list:1"]
    assert [message["tool_call_id"] for message in sent[3:]] == ["functions.read:0", "functions.list:1"]
    assert sent[3]["content"] == f"Error: {NO_RESULT}"


def test_calls_without_a_result_get_one_and_results_without_a_call_become_text() -> None:
    messages = (user(Text("q")), said(ToolCall("a", "read", {})), user(Text("never mind"), ToolResult("z", "found")))
    turns = arrange(messages, None)
    assert turns[2] == Said(
        (ToolResult("a", NO_RESULT, is_error=True),), ("never mind", "(Result of an earlier tool call)\nfound")
    )


def test_what_was_no_json_is_shown_as_what_was_written() -> None:
    messages = (user(Text("q")), said(ToolCall("a", "read", None, '{"path": ')), user(ToolResult("a", "bad", True)))
    body = anthropic_request.build_body(call_of(messages, api="anthropic"))
    assert body["messages"][1]["content"][0]["input"] == {"invalid_json": '{"path": '}


def test_padded_history_supplies_what_a_server_demands() -> None:
    messages = (user(Text("q")), said(ToolCall("a", "read", {})), user(ToolResult("a", "1")), said(Text("b")))
    body = anthropic_request.build_body(call_of(messages, api="anthropic", history="padded"))
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": " ", "signature": ""}
    sent = openai_request.build_body(call_of(messages, "gateway", history="padded"))["messages"]
    assert [message["reasoning_content"] for message in sent if message["role"] == "assistant"] == [" ", " "]


TOOL = ToolSpec("read", "Read a file.", {"type": "object"})


@pytest.mark.parametrize(
    ("name", "url", "field"),
    [
        ("openai", "https://api.openai.com/v1", "max_completion_tokens"),
        ("mine", "https://api.openai.com/v1", "max_completion_tokens"),
        ("deepseek", "https://api.deepseek.com", "max_tokens"),
        ("local", "http://127.0.0.1:8080/v1", "max_tokens"),
    ],
)
def test_the_limit_has_the_name_that_the_provider_knows(name: str, url: str, field: str) -> None:
    request = {"max_output_tokens": 7}
    body = openai_request.build_body(call_of((user(Text("q")),), name, url, request=request))
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {field: 7}
    without = openai_request.build_body(
        call_of((user(Text("q")),), name, url, request=request, without=frozenset({field}))
    )
    assert field not in without
    assert 7 in without.values()


def test_a_required_tool_is_said_as_each_side_says_it() -> None:
    request = {"tools": (TOOL,), "tool_choice": "required"}
    messages = (user(Text("q")),)
    assert openai_request.build_body(call_of(messages, request=request))["tool_choice"] == "required"
    assert "tool_choice" not in openai_request.build_body(call_of(messages, "kimi", request=request))
    body = anthropic_request.build_body(call_of(messages, api="anthropic", request=request))
    assert body["tool_choice"] == {"type": "any"}


def test_the_model_on_board_is_offered_no_tools_and_reads_old_calls_as_text() -> None:
    messages = (user(Text("q")), said(ToolCall("a", "read", {"path": "x"})), user(ToolResult("a", "found")))
    provider = Provider("embedded", "embedded", None, "m")
    body = openai_request.build_body(Call(ChatRequest("", messages, "s", (TOOL,)), provider, Key(), "m"))
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "found" in body["messages"][2]["content"]
