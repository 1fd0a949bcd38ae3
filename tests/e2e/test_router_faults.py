"""The fault table: 40 calls with one of three providers bad. Every call is answered, once, by one provider alone."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from lyma_server.errors import StreamInterrupted
from lyma_server.router.router import Router
from tests.routing import FORMATS, ask, make_provider, make_settings
from tests.stub_provider import Reply, StubProvider, cut, fail, hang, html, never_answer, refusing_url, say

CALLS = 40
STREAM = {"content-type": "text/event-stream"}
PAGE = "<html><body>Welcome</body></html>"
ERROR = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}

BEFORE_TEXT: dict[str, Reply | None] = {
    **{str(status): fail(status) for status in (401, 402, 403, 404, 408, 409, 429, 500, 502, 503, 504, 529)},
    "refused": None,
    "no headers": never_answer(),
    "no content": hang(),
    "keep-alives only": say(end="keep_alive"),
    "connection cut": cut(),
    "thinking, then cut": say(thinking=("hm",), end="cut"),
    "end without a finish": say(end="eof"),
    "page": html(),
    "page as a stream": Reply(body=PAGE, headers=STREAM),
    "text as a stream": Reply(body="upstream connect error or disconnect", headers=STREAM),
    "502 page": html(502),
    "nothing": Reply(body="", headers=STREAM),
    "bad JSON": Reply(body='{"id": "x", "choices": [', headers={"content-type": "application/json"}),
    "bad JSON in the stream": Reply(body='data: {"choices": [\n\n', headers=STREAM),
    "wrong types in the stream": Reply(
        body='data: {"choices": [7], "type": "content_block_delta"}\n\n', headers=STREAM
    ),
    "empty choices": Reply(body='{"choices": []}', headers={"content-type": "application/json"}),
    "null choices": Reply(body='{"choices": null}', headers={"content-type": "application/json"}),
    "error in a 200": Reply(body=json.dumps(ERROR), headers={"content-type": "application/json"}),
    "error before text": Reply(body=f"event: error\ndata: {json.dumps(ERROR)}\n\n", headers=STREAM),
    "other format": Reply(
        body='{"type": "unheard of", "content": "text"}', headers={"content-type": "application/json"}
    ),
}
AFTER_TEXT = {
    "cut": cut("bad"),
    "end": say("bad", end="eof"),
    "silence": hang("bad"),
    "keep-alives": say("bad", end="keep_alive"),
    "error": say("bad", end="error", error={"type": "api_error", "message": "Internal server error"}),
}


def make_router(stack: ExitStack, api: str, place: int, reply: Reply | None) -> Router:
    """Three providers, the one at `place` bad."""
    providers = []
    for number in range(3):
        if number == place and reply is None:
            providers.append(make_provider(refusing_url(), api, name=f"p{number}"))
            continue
        replies = [reply] if number == place and reply is not None else [say("a", "n", "swer")]
        providers.append(make_provider(stack.enter_context(StubProvider(replies)), api, name=f"p{number}"))
    settings = make_settings(first_content_s=0.5, first_content_thinking_s=0.5, between_content_s=0.2)
    return Router(tuple(providers), settings)


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("kind", BEFORE_TEXT)
async def test_forty_of_forty(kind: str, api: str) -> None:
    with ExitStack() as stack:
        router = make_router(stack, api, 0, BEFORE_TEXT[kind])
        outcomes = [await ask(router, session=f"s{number}") for number in range(CALLS)]
        await router.close()
    assert [outcome.text for outcome in outcomes] == ["answer"] * CALLS
    assert all(outcome.completed.message.blocks[0].text == "answer" for outcome in outcomes)  # type: ignore[union-attr]
    assert outcomes[0].attempts[0].class_ != "ok"
    assert outcomes[0].attempts[-1].provider == "p1"


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("kind", AFTER_TEXT)
async def test_after_the_first_text_every_break_is_told_and_asking_again_helps(kind: str, api: str) -> None:
    with ExitStack() as stack:
        router = make_router(stack, api, 0, AFTER_TEXT[kind])
        for _ in range(4):
            first, again = await ask(router), await ask(router)
            if first.error is None:  # the breaker has opened
                assert first.text == "answer"
                continue
            assert isinstance(first.error, StreamInterrupted)
            assert (first.text, first.error.partial) == ("bad", "bad")
            assert again.text == "answer"
        await router.close()


@pytest.mark.parametrize("place", [1, 2])
async def test_a_bad_provider_further_down_is_not_even_noticed(place: int) -> None:
    with ExitStack() as stack:
        router = make_router(stack, "openai", place, fail(500))
        outcomes = [await ask(router) for _ in range(CALLS)]
        await router.close()
    assert {outcome.attempts[0].provider for outcome in outcomes} == {"p0"}
