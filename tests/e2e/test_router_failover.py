"""Keys in turn, then providers, over loopback through the real SDKs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.errors import AllFailed, ConfigError, StreamInterrupted, UsageError
from lyma_server.protocol.events import Usage
from lyma_server.router.chat import Message, Restarted, Text, ThinkingDelta, ToolCall
from lyma_server.router.providers.base import Key, Provider
from lyma_server.router.router import Router
from tests.routing import FORMATS, ask, make_keys, make_provider, make_settings
from tests.stub_provider import (
    Reply,
    StubProvider,
    call_tool,
    cut,
    fail,
    hang,
    html,
    never_answer,
    refusing_url,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.stub_provider import Request

KEYS = make_keys(3)
SUBSETS = [subset for size in range(4) for subset in combinations((1, 2, 3), size)]
CLASSES = {429: "rate_limit", 500: "server_error", 502: "server_error", 503: "server_error", 529: "overloaded"}


def failing(status: int, keys: tuple[int, ...]) -> Callable[[Request], Reply]:
    """Answer these keys with `status` and the others with text."""
    return lambda request: fail(status) if int(request.key[-1]) in keys else say("Hel", "lo")


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("status", CLASSES)
async def test_any_failing_keys_are_rotated_past_and_the_next_ask_starts_where_it_worked(api: str, status: int) -> None:
    for keys in SUBSETS:
        with StubProvider(failing(status, keys)) as stub, StubProvider([say("other")]) as second:
            providers = (make_provider(stub, api, keys=KEYS), make_provider(second, name="two"))
            router = Router(providers, make_settings())
            first, again = await ask(router), await ask(router)
            await router.close()
        working = [number for number in (1, 2, 3) if number not in keys]
        tried = (1, 2, 3)[: (1, 2, 3).index(working[0])] if working else (1, 2, 3)
        steps = [(CLASSES[status], "rotate")] * len(tried)
        if not working:
            steps[-1] = (CLASSES[status], "fallback")
        assert first.route == [*steps, ("ok", "done")]
        assert first.keys == [*map(str, tried), str(working[0]) if working else "-"]
        assert first.text == ("Hello" if working else "other")
        assert again.route[-1] == ("ok", "done")
        if working:
            assert again.keys == [str(working[0])]


@pytest.mark.parametrize("api", FORMATS)
async def test_a_session_keeps_its_key_and_another_begins_where_the_last_answer_came_from(api: str) -> None:
    with StubProvider([fail(429), say("a")]) as stub:
        router = Router((make_provider(stub, api, keys=KEYS),), make_settings())
        for session in ("s", "s", "t"):
            await ask(router, session=session)
        await router.close()
    assert [request.key[-1] for request in stub.requests] == ["1", "2", "2", "2"]


async def test_every_call_turns_the_ring_when_asked_to() -> None:
    with StubProvider([say("a")]) as stub:
        router = Router((make_provider(stub, keys=KEYS),), make_settings(rotation="every-call"))
        for _ in range(4):
            await ask(router)
        await router.close()
    assert [request.key[-1] for request in stub.requests] == ["1", "2", "3", "1"]


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(
    ("replies", "classes"),
    [
        pytest.param([never_answer()], ["timeout"], id="hangs"),
        pytest.param([fail(402)], ["quota_exhausted"] * 3, id="out of credit"),
        pytest.param([fail(401)], ["auth_invalid"] * 3, id="keys refused"),
        pytest.param([html(404)], ["wrong_url"], id="wrong place"),
    ],
)
async def test_a_provider_that_is_out_is_followed_by_the_next(
    api: str, replies: list[Reply], classes: list[str]
) -> None:
    with StubProvider(replies) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, api, keys=KEYS), make_provider(second, api, name="two", keys=make_keys(1)))
        router = Router(providers, make_settings(first_content_s=0.1, first_content_thinking_s=0.1))
        outcome = await ask(router)
        await router.close()
    assert outcome.text == "other"
    assert [class_ for class_, _ in outcome.route] == [*classes, "ok"]
    assert outcome.route[-2:] == [(classes[-1], "fallback"), ("ok", "done")]


@pytest.mark.parametrize("api", FORMATS)
async def test_a_refused_connection_is_followed_by_the_next_provider_at_once(api: str) -> None:
    with StubProvider([say("other")]) as second:
        first = make_provider(refusing_url(), api, keys=KEYS)
        router = Router((first, make_provider(second, name="two")), make_settings())
        outcome, again = await ask(router), await ask(router)
        await router.close()
    assert outcome.route == [("connect_error", "fallback"), ("ok", "done")]
    assert again.route == [("ok", "done")]


async def test_a_host_that_does_not_exist_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", find_nothing)
    router = Router((make_provider("http://nowhere.invalid/v1"),), make_settings())
    outcome = await ask(router)
    await router.close()
    assert isinstance(outcome.error, AllFailed)
    assert outcome.route == [("dns_error", "fail")]
    assert "http://nowhere.invalid/v1" in outcome.error.message


@pytest.mark.parametrize("api", FORMATS)
async def test_an_answer_with_thinking_tools_and_usage_is_whole(api: str) -> None:
    reply = call_tool("read_file", {"path": "ä\u2028b"}, thinking=("hm",), text=("Look:",))
    with StubProvider([reply]) as stub:
        router = Router((make_provider(stub, api),), make_settings())
        outcome = await ask(router)
        await router.close()
    blocks = outcome.completed.message.blocks
    call = blocks[-1]
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("read_file", {"path": "ä\u2028b"})
    assert Text("Look:") in blocks
    assert outcome.completed.finish == "tool_calls"
    assert outcome.completed.usage == Usage(input_tokens=11, output_tokens=7, cost_micros=0)
    assert ThinkingDelta("hm") in outcome.events


@pytest.mark.parametrize("api", FORMATS)
async def test_thinking_that_is_lost_is_declared_void_and_the_answer_comes_from_elsewhere(api: str) -> None:
    with StubProvider([say(thinking=("hm",), end="cut")]) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, api), make_provider(second, name="two"))
        router = Router(providers, make_settings())
        outcome = await ask(router)
        await router.close()
    assert [type(event) for event in outcome.events[:2]] == [ThinkingDelta, Restarted]
    assert outcome.text == "other"
    assert outcome.route == [("stream_cut", "fallback"), ("ok", "done")]


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(
    ("reply", "class_"),
    [
        (cut("he", "llo"), "stream_cut"),
        (say("he", "llo", end="eof"), "stream_cut"),
        (hang("he", "llo"), "stalled"),
        (say("he", "llo", end="keep_alive"), "stalled"),
        (say("he", "llo", end="error", error={"type": "overloaded_error", "message": "Overloaded"}), "overloaded"),
    ],
)
async def test_what_breaks_after_the_first_text_is_never_papered_over(api: str, reply: Reply, class_: str) -> None:
    with StubProvider([reply]) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, api), make_provider(second, name="two"))
        router = Router(providers, make_settings(between_content_s=0.1))
        outcome, again = await ask(router), await ask(router)
        await router.close()
    assert isinstance(outcome.error, StreamInterrupted)
    assert outcome.error.partial == outcome.text == "hello"
    assert outcome.route == [(class_, "fail")]
    assert again.text == "other"


async def test_a_tool_delta_commits_as_text_does() -> None:
    with StubProvider([call_tool("read", {"a": 1}, end="cut")]) as stub, StubProvider([say("other")]) as second:
        router = Router((make_provider(stub), make_provider(second, name="two")), make_settings())
        outcome = await ask(router)
        await router.close()
    assert isinstance(outcome.error, StreamInterrupted)
    assert len(second.requests) == 0


@pytest.mark.parametrize("api", FORMATS)
async def test_a_refusal_goes_to_one_other_provider_and_is_the_answer_where_there_is_none(api: str) -> None:
    with StubProvider([say(finish="refusal")]) as stub, StubProvider([say("other")]) as second:
        alone = Router((make_provider(stub, api),), make_settings())
        both = Router((make_provider(stub, api), make_provider(second, name="two")), make_settings())
        refused, answered = await ask(alone), await ask(both)
        await alone.close()
        await both.close()
    assert refused.completed.finish == "refusal"
    assert refused.error is None
    assert answered.text == "other"
    assert answered.route == [("content_filter", "fallback"), ("ok", "done")]


@pytest.mark.parametrize("api", FORMATS)
async def test_a_prompt_of_ten_mebibytes_arrives(api: str) -> None:
    prompt = "ä" * (5 << 20)
    with StubProvider([say("a")]) as stub:
        router = Router((make_provider(stub, api),), make_settings())
        outcome = await ask(router, messages=(Message("user", (Text(prompt),)),))
        await router.close()
    assert outcome.text == "a"
    assert prompt in str(stub.requests[0].body["messages"][-1]["content"])


async def test_calls_at_once_share_the_connections_and_do_not_mix() -> None:
    def echo(request: Request) -> Reply:
        return say(*request.body["messages"][-1]["content"])

    with StubProvider(echo) as stub:
        router = Router((make_provider(stub, keys=KEYS),), make_settings())
        prompts = [f"prompt {number}" for number in range(16)]
        asked = (ask(router, session=prompt, messages=(Message("user", (Text(prompt),)),)) for prompt in prompts)
        outcomes = await asyncio.gather(*asked)
        await router.close()
    assert [outcome.text for outcome in outcomes] == prompts


async def test_a_bad_request_is_tried_on_no_other_key() -> None:
    with StubProvider([fail(400)]) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, keys=KEYS), make_provider(second, name="two"))
        router = Router(providers, make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("bad_request", "fail")]
    assert (len(stub.requests), len(second.requests)) == (1, 0)
    assert isinstance(outcome.error, AllFailed)


async def test_hours_of_retry_after_are_state_and_never_slept() -> None:
    with StubProvider([fail(429, headers={"retry-after": "11143"})]) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub), make_provider(second, name="two"))
        router = Router(providers, make_settings())
        first, again = await ask(router), await ask(router)
        status = router.status()[0]
        await router.close()
    assert first.text == again.text == "other"
    assert (len(stub.requests), len(second.requests)) == (1, 2)
    assert (first.attempts[0].retry_after_ms or 0) >= 11_143_000
    assert (status.keys[0].state, status.keys[0].reason) == ("cooling", "rate_limit")
    assert status.keys[0].until is not None


async def test_a_short_wait_is_waited_where_nobody_else_is_free() -> None:
    with StubProvider([fail(429, headers={"retry-after-ms": "1000"}), say("late")]) as stub:
        router = Router((make_provider(stub),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("rate_limit", "wait"), ("ok", "done")]
    assert outcome.text == "late"


async def test_a_loading_model_is_waited_for() -> None:
    loading = fail(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    with StubProvider([loading, say("ready")]) as stub:
        router = Router((make_provider(stub),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("warming_up", "wait"), ("ok", "done")]


async def test_when_all_fail_one_error_lists_each_with_the_earliest_retry() -> None:
    limited = fail(429, headers={"retry-after": "70"})
    with StubProvider([limited]) as stub:
        providers = (make_provider(stub, keys=make_keys(2)), make_provider(refusing_url(), name="two", keys=(Key(),)))
        router = Router(providers, make_settings())
        outcome, again = await ask(router), await ask(router, provider="one")
        await router.close()
    error = outcome.error
    assert isinstance(error, AllFailed)
    assert "one (2 keys) is limiting the rate of requests, next try in" in error.message
    assert "two could not be reached at http://127.0.0.1" in error.message
    rows: Any = error.data["attempts"]
    assert [(row["provider"], row["class"]) for row in rows] == [
        ("one", "rate_limit"), ("one", "rate_limit"), ("two", "connect_error"),
    ]  # fmt: skip
    assert isinstance(error.data["retry_after_ms"], int)
    assert error.data["retry_after_ms"] <= 10_000
    assert isinstance(again.error, AllFailed)
    assert again.attempts == []
    assert "limiting the rate" in again.error.message


async def test_where_nothing_else_is_free_an_open_breaker_is_no_reason_not_to_try() -> None:
    url = refusing_url()
    router = Router((make_provider(url),), make_settings())
    await ask(router)
    again = await ask(router)
    await router.close()
    assert again.route == [("connect_error", "fail")]


async def test_a_pin_sends_nothing_elsewhere_and_a_preference_only_goes_first() -> None:
    with StubProvider([say("one")]) as stub, StubProvider([say("two")]) as second:
        providers = (
            make_provider(stub),
            make_provider(second, name="two"),
            make_provider(refusing_url(), name="down"),
        )
        router = Router(providers, make_settings())
        pinned, preferred = await ask(router, provider="two"), await ask(router, prefer="two")
        down, unknown = await ask(router, provider="down"), await ask(router, provider="nobody")
        await router.close()
    assert (pinned.text, preferred.text) == ("two", "two")
    assert isinstance(down.error, AllFailed)
    assert isinstance(unknown.error, UsageError)
    assert "one, two, down" in unknown.error.message
    assert stub.requests == []


async def test_a_parameter_that_is_refused_is_left_out_from_then_on() -> None:
    refusal = {"error": {"message": "Unsupported parameter: 'stream_options'", "code": "unsupported_parameter",
                         "param": "stream_options", "type": "invalid_request_error"}}  # fmt: skip
    with StubProvider([fail(400, refusal), say("a")]) as stub:
        router = Router((make_provider(stub),), make_settings())
        first, again = await ask(router), await ask(router)
        await router.close()
    assert first.route == [("param_unsupported", "repair"), ("ok", "done")]
    assert again.route == [("ok", "done")]
    assert ["stream_options" in request.body for request in stub.requests] == [True, False, False]


async def test_auto_takes_the_first_model_that_is_listed() -> None:
    with StubProvider([say("a")], models=("loaded", "other")) as stub:
        router = Router((make_provider(stub, model="auto"),), make_settings())
        outcome, listed = await ask(router), await router.models()
        await router.close()
    assert stub.requests[0].body["model"] == "loaded"
    assert outcome.attempts[0].model == "loaded"
    assert [model.id for model in listed.models] == ["loaded", "other"]


async def test_models_of_a_provider_that_is_down_are_a_failure_beside_the_others() -> None:
    with StubProvider([say("a")]) as stub:
        providers = (make_provider(stub), make_provider(refusing_url(), name="two"))
        router = Router(providers, make_settings())
        listed = await router.models()
        await router.close()
    assert [model.provider for model in listed.models] == ["one"]
    assert [failure.message[:41] for failure in listed.failures] == ["two could not be reached at http://127.0."]


async def test_a_kept_connection_that_the_server_has_closed_is_no_failure() -> None:
    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the first request of a connection and close it when the second comes."""
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(DONE))
        writer.write(DONE)
        with contextlib.suppress(asyncio.IncompleteReadError):  # nobody asks on the last one again
            await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    router = Router((make_provider(f"http://127.0.0.1:{port}/v1"),), make_settings())
    outcomes = [await ask(router) for _ in range(4)]
    await router.close()
    server.close()
    assert [outcome.route for outcome in outcomes] == [[("ok", "done")]] * 4


DONE = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


async def read_request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))


async def test_an_answer_in_the_other_format_is_no_answer() -> None:
    other = Reply(body='{"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}')
    with StubProvider([other]) as stub, StubProvider([say("second")]) as second:
        router = Router((make_provider(stub), make_provider(second, name="two")), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("protocol_error", "retry"), ("protocol_error", "fallback"), ("ok", "done")]


async def test_auto_with_no_model_loaded_goes_on_to_the_next_provider() -> None:
    with StubProvider([say("a")], models=()) as stub, StubProvider([say("second")]) as second:
        router = Router((make_provider(stub, model="auto"), make_provider(second, name="two")), make_settings())
        outcome = await ask(router)
        stub.models = ("loaded",)
        later = await ask(router)
        await router.close()
    assert outcome.route == [("model_unavailable", "fallback"), ("ok", "done")]
    assert later.text == "a"


async def test_a_key_that_is_free_again_soon_is_waited_for_before_anything_is_sent() -> None:
    with StubProvider([fail(429, headers={"retry-after-ms": "1000"}), say("late")]) as stub:
        router = Router((make_provider(stub),), make_settings(deadline_s=1))
        first = await ask(router)
        patient = Router((make_provider(stub),), make_settings(), router._state)
        second = await ask(patient)
        await router.close()
        await patient.close()
    assert first.error is not None
    assert second.route == [("ok", "done")]


async def test_a_model_on_board_that_cannot_start_says_why_and_the_next_answers() -> None:
    class Broken:
        async def socket(self) -> str:
            raise ConfigError("The model file is missing: run `lyma embedded install`.")

        async def stop(self) -> None: ...

    embedded = Provider("embedded", "embedded", None, "auto")
    with StubProvider([say("second")]) as second:
        providers = (embedded, make_provider(second, name="two"))
        router = Router(providers, make_settings(), launcher=Broken())
        outcome, alone = await ask(router), await ask(router, provider="embedded")
        await router.close()
    assert outcome.text == "second"
    assert alone.error is not None
    assert "embedded could not start (The model file is missing" in alone.error.message


async def test_pages_from_three_providers_leave_the_fourth_its_turn() -> None:
    """Each page is asked for twice, which would use up the attempts of a call if it counted."""
    with StubProvider([html()]) as pages, StubProvider([say("whole")]) as good:
        providers = [make_provider(pages, name=f"page{n}") for n in range(3)]
        router = Router((*providers, make_provider(good, name="good")), make_settings())
        outcome = await ask(router)
        await router.close()
    assert (outcome.error, outcome.text) == (None, "whole")
    assert len(pages.requests) == 6
