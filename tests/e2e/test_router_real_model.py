"""The router before a real llama.cpp server, in both wire formats."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from lyma_server.router.chat import Message, Origin, Text, Thinking, ToolCall, ToolResult, ToolSpec
from lyma_server.router.router import Router
from tests.llama import scripts
from tests.routing import FORMATS, ask, make_provider, make_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lyma_server.router.chat import Block
    from tests.llama.server import LlamaServer

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (ToolSpec("read_file", "Read a file.", SCHEMA), ToolSpec("list_files", "List a folder.", SCHEMA))
ORIGINS = [Origin("openai", "m"), Origin("anthropic", "m"), Origin("gone", "m"), None]
PROMPTS = ["look", "please read it", "in two steps", "hi", "unicode"]
WORDS = ["", " ", "hello", "two\nlines", "Grüße 日本", "\u2028", "<tool_call>"]


@pytest.fixture
async def router(scripted_server: LlamaServer) -> AsyncIterator[Router]:
    """One provider for each format, both the same real server."""
    urls = {"openai": scripted_server.openai_url, "anthropic": scripted_server.anthropic_url}
    providers = (make_provider(urls[api], api, name=api, model=scripted_server.model) for api in FORMATS)
    built = Router(tuple(providers), make_settings())
    yield built
    await built.close()


def user(text: str) -> Message:
    return Message("user", (Text(text),))


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(
    ("prompt", "text"), [("hi", scripts.HELLO), ("unicode", scripts.UNICODE), ("edit", scripts.DIFF)]
)
async def test_a_text_arrives_whole(router: Router, api: str, prompt: str, text: str) -> None:
    outcome = await ask(router, provider=api, messages=(user(prompt),))
    assert outcome.text == text
    assert outcome.completed.finish == "end_turn"
    assert outcome.completed.usage.output_tokens > 0
    assert not outcome.completed.usage.estimated


@pytest.mark.parametrize("apis", [FORMATS, FORMATS[::-1]])
async def test_a_tool_loop_goes_on_at_the_other_provider(router: Router, apis: tuple[str, str]) -> None:
    first = await ask(router, provider=apis[0], messages=(user("look"),), tools=TOOLS)
    said = first.completed.message
    call = said.blocks[-1]
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("read_file", {"path": "c.py"})
    assert first.completed.finish == "tool_calls"
    result = Message("user", (ToolResult(call.id, "hello"),))
    second = await ask(router, provider=apis[1], messages=(user("look"), said, result), tools=TOOLS)
    assert second.text == scripts.AFTER_TOOL


@pytest.mark.parametrize("api", FORMATS)
async def test_an_endless_answer_stops_when_it_is_given_up(
    router: Router, scripted_server: LlamaServer, api: str
) -> None:
    task = asyncio.create_task(ask(router, provider=api, messages=(user("forever"),)))
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(scripted_server.busy_slots):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while await asyncio.to_thread(scripted_server.busy_slots):
            await asyncio.sleep(0.02)


def make_conversation(chance: random.Random) -> tuple[Message, ...]:
    """A conversation that went through several providers, was cut short here and there and lost what it lost."""
    messages: list[Message] = []
    calls = ["missing"]
    for _ in range(chance.randint(1, 6)):
        blocks: list[Block] = []
        if chance.random() < 0.5:
            blocks += [ToolResult(chance.choice(calls), chance.choice(WORDS), chance.random() < 0.2)] * chance.randint(
                0, 2
            )
            blocks += [Text(chance.choice(WORDS)) for _ in range(chance.randint(0, 2))]
            messages.append(Message("user", tuple(blocks)))
            continue
        if chance.random() < 0.3:
            blocks.append(Thinking(chance.choice(WORDS), chance.choice([None, "sig"])))
        blocks += [Text(chance.choice(WORDS)) for _ in range(chance.randint(0, 2))]
        for _ in range(chance.randint(0, 2)):
            calls.append(f"call.{chance.randint(0, 5)}:{len(calls) % 3}")
            arguments = chance.choice([None, {}, {"path": chance.choice(WORDS)}])
            blocks.append(ToolCall(calls[-1], chance.choice(["read_file", "", "gone tool"]), arguments, "{bro"))
        messages.append(Message("assistant", tuple(blocks), chance.choice(ORIGINS)))
    return tuple(messages)


async def wander(router: Router, chance: random.Random) -> tuple[set[str], int]:
    """Go on with a conversation at one provider after the other, and put all of it to both in the end. Which providers it
    was at, and how many tools were called on the way.
    """
    messages = [*make_conversation(chance), user(chance.choice(PROMPTS))]
    places, called = set(), 0
    for api in (*chance.choices(FORMATS, k=chance.randint(2, 4)), *FORMATS):
        outcome = await ask(router, provider=api, messages=tuple(messages), tools=TOOLS)
        detail = outcome.error.detail if outcome.error is not None else ""
        assert outcome.route == [("ok", "done")], f"{api} {outcome.route}: {detail} {messages}"
        said = outcome.completed.message
        places.add(api)
        calls = [block for block in said.blocks if isinstance(block, ToolCall)]
        called += len(calls)
        results = tuple(ToolResult(call.id, chance.choice(WORDS), chance.random() < 0.2) for call in calls)
        messages += [said, Message("user", results) if results else user(chance.choice(PROMPTS))]
    return places, called


@pytest.mark.parametrize("count", [6, pytest.param(500, marks=pytest.mark.full)])
async def test_any_conversation_that_wandered_is_taken_by_both_formats(router: Router, count: int) -> None:
    chance = random.Random(11)
    called = 0
    for _ in range(count):
        places, more = await wander(router, chance)
        assert places == set(FORMATS)
        called += more
    assert called > count
