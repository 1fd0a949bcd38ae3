"""Both wire formats of a real llama.cpp server, byte for byte as our providers will meet them."""

from __future__ import annotations

import asyncio
import json
import time

import httpx2
import pytest

from tests.llama import scripts

TOOL = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class OpenAI:
    """Chat completions."""

    def __init__(self, server):
        self.url, self.model = f"{server.openai_url}/chat/completions", server.model
        self.messages: list[dict] = []

    def body(self, tools=(), **more):
        described = [{"type": "function", "function": {"name": name, "parameters": TOOL}} for name in tools]
        return (
            {"model": self.model, "messages": self.messages, "stream": True}
            | more
            | ({"tools": described} if tools else {})
        )

    def text_of(self, event):
        return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))

    def add_result(self, call, result):
        self.messages.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": call[0], "type": "function", "function": {"name": call[1], "arguments": call[2]}}
                ],
            }
        )
        self.messages.append({"role": "tool", "tool_call_id": call[0], "content": result})

    def call_of(self, events):
        parts = [
            part
            for event in events
            for choice in event.get("choices", ())
            for part in choice["delta"].get("tool_calls") or ()
        ]
        functions = [part["function"] for part in parts]
        return parts[0]["id"], functions[0]["name"], "".join(one.get("arguments", "") for one in functions)

    def finish_of(self, events):
        return [
            choice["finish_reason"]
            for event in events
            for choice in event.get("choices", ())
            if choice.get("finish_reason")
        ]


class Anthropic:
    """Messages."""

    def __init__(self, server):
        self.url, self.model = f"{server.anthropic_url}/v1/messages", server.model
        self.messages: list[dict] = []

    def body(self, tools=(), **more):
        described = [{"name": name, "input_schema": TOOL} for name in tools]
        return (
            {"model": self.model, "messages": self.messages, "stream": True, "max_tokens": 4096}
            | more
            | ({"tools": described} if tools else {})
        )

    def text_of(self, event):
        return event["delta"].get("text", "") if event["type"] == "content_block_delta" else ""

    def add_result(self, call, result):
        use = {"type": "tool_use", "id": call[0], "name": call[1], "input": json.loads(call[2])}
        self.messages.append({"role": "assistant", "content": [use]})
        self.messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call[0], "content": result}]}
        )

    def call_of(self, events):
        block = next(
            e["content_block"]
            for e in events
            if e["type"] == "content_block_start" and e["content_block"]["type"] == "tool_use"
        )
        deltas = [e["delta"].get("partial_json", "") for e in events if e["type"] == "content_block_delta"]
        return block["id"], block["name"], "".join(deltas)

    def finish_of(self, events):
        return [event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta"]


@pytest.fixture(params=[OpenAI, Anthropic])
def speak(request):
    return request.param


async def events_of(chat, **options):
    async with (
        httpx2.AsyncClient(timeout=30) as client,
        client.stream("POST", chat.url, json=chat.body(**options)) as reply,
    ):
        assert reply.status_code == 200, await reply.aread()
        return [json.loads(line[6:]) async for line in reply.aiter_lines() if line.startswith("data: {")]


async def answer(chat, prompt, **options):
    chat.messages.append({"role": "user", "content": prompt})
    events = await events_of(chat, **options)
    return "".join(map(chat.text_of, events)), events


@pytest.mark.parametrize(
    ("prompt", "text"), [("hello", scripts.HELLO), ("unicode please", scripts.UNICODE), ("edit it", scripts.DIFF)]
)
async def test_a_text_arrives_whole_and_in_pieces(scripted_server, speak, prompt, text):
    chat = speak(scripted_server)
    said, events = await answer(chat, prompt)
    assert said == text
    assert sum(bool(chat.text_of(event)) for event in events) > 3
    assert chat.finish_of(events) in (["stop"], ["end_turn"])


async def test_a_tool_is_called_and_its_result_answered(scripted_server, speak):
    chat = speak(scripted_server)
    _, events = await answer(chat, "read it", tools=["read_file"])
    call = chat.call_of(events)
    assert (call[1], json.loads(call[2])) == ("read_file", {"path": "a.py"})
    assert chat.finish_of(events) in (["tool_calls"], ["tool_use"])
    chat.add_result(call, "hello")
    assert "".join(map(chat.text_of, await events_of(chat, tools=["read_file"]))) == scripts.AFTER_TOOL


async def test_two_tools_one_after_the_other(scripted_server, speak):
    chat = speak(scripted_server)
    _, events = await answer(chat, "two steps", tools=["list_files", "read_file"])
    for name in ("list_files", "read_file"):
        call = chat.call_of(events)
        assert call[1] == name
        chat.add_result(call, f"result of {name}")
        events = await events_of(chat, tools=["list_files", "read_file"])
    assert "".join(map(chat.text_of, events)) == scripts.AFTER_TWO_TOOLS


async def test_words_before_a_tool_call(scripted_server, speak):
    chat = speak(scripted_server)
    said, events = await answer(chat, "look at it", tools=["read_file"])
    assert said.strip() == scripts.BEFORE_TOOL
    assert json.loads(chat.call_of(events)[2]) == {"path": "c.py"}


async def test_an_endless_answer_ends_when_its_reader_goes(scripted_server, speak):
    chat = speak(scripted_server)
    chat.messages.append({"role": "user", "content": "forever"})
    async with httpx2.AsyncClient(timeout=30) as client, client.stream("POST", chat.url, json=chat.body()) as reply:
        said, lines = "", reply.aiter_lines()
        while len(said) < 200:
            line = await anext(lines)
            said += chat.text_of(json.loads(line[6:])) if line.startswith("data: {") else ""
        assert await asyncio.to_thread(scripted_server.busy_slots) == 1
    assert said.startswith(scripts.ENDLESS * 4)
    deadline = time.monotonic() + 2
    while await asyncio.to_thread(scripted_server.busy_slots):
        assert time.monotonic() < deadline, "the slot was not released"


async def test_the_small_model_says_something_of_its_own_to_each_prompt(smollm_server, speak):
    prompts = ("Tell me three things about Paris.", "Write one line of Python that prints hello.")
    said = [(await answer(speak(smollm_server), prompt, max_tokens=12, temperature=0))[0] for prompt in prompts]
    assert all(len(text.split()) > 1 for text in said)
    assert said[0] != said[1]
