"""Whoever gives up a call closes the provider's connection at once, whatever the call was waiting for."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from lyma_server.router.chat import TextDelta
from lyma_server.router.router import Router
from tests.routing import FORMATS, ask, make_provider, make_request, make_settings
from tests.stub_provider import Reply, StubProvider, fail, hang, never_answer, refusing_url, say

if TYPE_CHECKING:
    from lyma_server.protocol.events import Attempt

SOON_S = 2.0


async def closed(stub: StubProvider) -> bool:
    """Whether the connection of the last request is closed soon."""
    return await asyncio.to_thread(stub.requests[-1].closed.wait, SOON_S)


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("reply", [never_answer(), hang(), hang("he"), say("he", end="keep_alive")])
async def test_cancelling_the_task_closes_the_connection(api: str, reply: Reply) -> None:
    with StubProvider([reply]) as stub:
        router = Router((make_provider(stub, api),), make_settings())
        await router.warm_up()
        task = asyncio.create_task(ask(router))
        await asyncio.to_thread(stub.wait_for_request)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await closed(stub)
        await router.close()


@pytest.mark.parametrize("api", FORMATS)
async def test_closing_the_generator_closes_the_connection(api: str) -> None:
    attempts: list[Attempt] = []
    with StubProvider([hang("he")]) as stub:
        router = Router((make_provider(stub, api),), make_settings())
        async with aclosing(router.stream(make_request(), attempts.append)) as events:
            assert await anext(events) == TextDelta("he")
        assert await closed(stub)
        await router.close()
    assert [(attempt.class_, attempt.next) for attempt in attempts] == [("cancelled", "fail")]


async def test_a_call_that_was_given_up_is_held_against_nobody() -> None:
    with StubProvider([hang("he"), hang("he"), hang("he"), hang("he"), say("answer")]) as stub:
        router = Router((make_provider(stub),), make_settings())
        for _ in range(4):
            async with aclosing(router.stream(make_request(), lambda _: None)) as events:
                await anext(events)
        outcome = await ask(router)
        await router.close()
    assert outcome.text == "answer"


async def test_the_deadline_ends_a_call_that_goes_on_for_ever() -> None:
    with StubProvider([say(*"endless" * 100, pause_s=0.05)]) as stub:
        router = Router((make_provider(stub),), make_settings(deadline_s=1))
        started = time.monotonic()
        outcome = await ask(router)
        await router.close()
    assert outcome.error is not None
    assert outcome.error.kind == "provider_error"
    assert time.monotonic() - started < SOON_S


@pytest.mark.full
async def test_a_call_can_be_given_up_at_any_moment() -> None:
    chance = random.Random(7)
    replies = [never_answer(), fail(400), say(*"words", pause_s=0.005), hang("he"), say("he", end="keep_alive")]
    with StubProvider(lambda _: chance.choice(replies)) as stub:
        providers = (make_provider(refusing_url(), name="down"), make_provider(stub, "anthropic"))
        router = Router(providers, make_settings())
        await router.warm_up()
        for _ in range(200):
            task = asyncio.create_task(ask(router))
            await asyncio.sleep(chance.random() * 0.04)
            task.cancel()
            started = time.monotonic()
            await asyncio.gather(task, return_exceptions=True)
            assert time.monotonic() - started < SOON_S
        left = [request for request in stub.requests if not request.done.is_set()]
        assert all([await asyncio.to_thread(request.closed.wait, SOON_S) for request in left])
        await router.close()
