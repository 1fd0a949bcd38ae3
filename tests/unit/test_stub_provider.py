"""The stub provider is believed by other tests, so it is held to the real SDKs here."""

from __future__ import annotations

import socket

import anthropic
import httpx2
import openai
import pytest

from tests.stub_provider import StubProvider, call_tool, cut, fail, hang, refusing_url, say

MESSAGES = [{"role": "user", "content": "hi"}]


async def openai_text(stub: StubProvider) -> str:
    async with openai.AsyncOpenAI(base_url=stub.openai_url, api_key="k1", max_retries=0) as client:
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def anthropic_message(stub: StubProvider) -> anthropic.types.Message:
    async with (
        anthropic.AsyncAnthropic(base_url=stub.anthropic_url, api_key="k2", max_retries=0) as client,
        client.messages.stream(model="m", messages=MESSAGES, max_tokens=9) as stream,
    ):
        return await stream.get_final_message()


async def test_both_sdks_read_streamed_text():
    with StubProvider([say("Hé", "llo")]) as stub:
        assert await openai_text(stub) == "Héllo"
        message = await anthropic_message(stub)
    assert message.content[0].text == "Héllo"
    assert message.stop_reason == "end_turn"
    assert [request.key for request in stub.requests] == ["k1", "k2"]
    assert stub.requests[0].body["messages"] == MESSAGES


async def test_both_sdks_read_a_tool_call():
    with StubProvider([call_tool("read_file", {"path": "a"}, thinking=("hm",))]) as stub:
        message = await anthropic_message(stub)
        async with (
            openai.AsyncOpenAI(base_url=stub.openai_url, api_key="k", max_retries=0) as client,
            client.chat.completions.stream(model="m", messages=MESSAGES) as stream,
        ):
            final = await stream.get_final_completion()
    assert message.content[1].input == {"path": "a"}
    assert message.stop_reason == "tool_use"
    assert final.choices[0].message.tool_calls[0].function.arguments == '{"path": "a"}'


async def test_replies_are_taken_in_turn_and_the_last_one_stays():
    with StubProvider([fail(429, headers={"retry-after": "7"}), say("ok")]) as stub:
        with pytest.raises(openai.RateLimitError) as caught:
            await openai_text(stub)
        assert caught.value.response.headers["retry-after"] == "7"
        assert [await openai_text(stub), await openai_text(stub)] == ["ok", "ok"]


async def test_a_client_that_leaves_is_noticed():
    with StubProvider([hang("a")]) as stub:
        async with httpx2.AsyncClient() as client:
            body = {"stream": True, "model": "m"}
            async with client.stream("POST", f"{stub.openai_url}/chat/completions", json=body) as response:
                await anext(response.aiter_lines())
        request = stub.wait_for_request()
        assert request.closed.wait(5)
        assert not request.done.is_set()


async def test_a_cut_is_an_error_at_the_client():
    with StubProvider([cut("a")]) as stub, pytest.raises((openai.APIConnectionError, httpx2.HTTPError)):
        await openai_text(stub)


async def test_models_are_listed_for_both():
    with StubProvider([say("x")], models=("one", "two")) as stub:
        async with openai.AsyncOpenAI(base_url=stub.openai_url, api_key="k") as client:
            assert [model.id async for model in client.models.list()] == ["one", "two"]
        async with anthropic.AsyncAnthropic(base_url=stub.anthropic_url, api_key="k") as client:
            assert [model.id async for model in client.models.list()] == ["one", "two"]
    assert len(stub.listings) == 2
    assert stub.requests == []


def test_nothing_listens_at_the_refusing_url():
    port = int(refusing_url().split(":")[2].split("/")[0])
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass
