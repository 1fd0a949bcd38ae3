"""A key that the provider echoes is nowhere in what a call tells: not in attempts, events, or the text and data of errors."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from lyma_server.router.providers.base import Key
from lyma_server.router.router import Router
from lyma_server.secret import Secret
from tests.routing import FORMATS, Outcome, ask, make_provider, make_settings
from tests.stub_provider import Reply, StubProvider, fail, say

CANARY = "sk-canary-DEADBEEF-0123456789abcdef-echo"
ECHO = {"error": {"message": f"Incorrect API key provided: {CANARY}", "type": "invalid_request_error", "code": CANARY}}


def tell_all(outcome: Outcome) -> str:
    """Everything that a call told, but for the detail that is only for the (redacted) log."""
    told: list[Any] = [repr(event) for event in outcome.events]
    told += [
        [getattr(attempt, name) for name in attempt.__slots__ if name != "__weakref__"] for attempt in outcome.attempts
    ]
    if outcome.error is not None:
        told += [str(outcome.error), outcome.error.message, outcome.error.data]
        told += traceback.format_exception(outcome.error)
    return json.dumps(told, default=str)


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(
    "reply",
    [
        fail(401, ECHO),
        fail(400, ECHO, {"x-echo": CANARY}),
        fail(429, ECHO, {"x-request-id": CANARY, "openai-organization": CANARY}),
        fail(500, f"broken {CANARY}"),
        Reply(status=200, body=f"<html>{CANARY}</html>", headers={"content-type": "text/html"}),
        say(end="error", error={"type": "server_error", "message": CANARY}),
        say("he", end="error", error={"type": "server_error", "message": CANARY}),
        Reply(status=200, body=f"data: {{broken {CANARY}\n\n", headers={"content-type": "text/event-stream"}),
    ],
)
async def test_what_a_server_echoes_stays_out(api: str, reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with StubProvider([reply]) as stub:
        router = Router((make_provider(stub, api, keys=(Key(Secret(CANARY)),)),), make_settings())
        outcome = await ask(router)
        told = tell_all(outcome) + repr(router.status()) + repr(vars(router))
        await router.close()
    assert stub.requests[0].key == CANARY
    assert outcome.error is not None
    assert CANARY not in told
    assert CANARY not in caplog.text


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("key", ["sk-ünprintable-0123456789", "sk-new\nline-0123456789", " sk-blank-0123456789abcdef"])
async def test_a_key_that_no_header_can_carry_is_refused_without_being_told(api: str, key: str) -> None:
    with StubProvider([say("a")]) as stub:
        router = Router((make_provider(stub, api, keys=(Key(Secret(key)),)),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("auth_invalid", "fail")]
    assert stub.requests == []
    assert key.strip() not in tell_all(outcome)
