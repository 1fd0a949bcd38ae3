"""What a provider streams, however damaged: the same however it is cut, an answer, or a failure of that provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.errors import LymaError
from lyma_server.router.chat import Completed
from lyma_server.router.providers.sse import EventParser, ServerEvent
from lyma_server.router.router import Router
from tests.fuzz.mutations import corpus, damaged, effort
from tests.routing import FORMATS, ask, make_provider, make_settings
from tests.stub_formats import stream
from tests.stub_provider import Reply, Request, StubProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLY = Reply(text=("Hé", "llo"), thinking=("hm",), calls=(("read_file", '{"path": "a"}'),))
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
STREAMS = {api: "".join(stream(Request("POST", path, {}, b"{}"), REPLY)).encode() for api, path in PATHS.items()}
SEEDS = (*STREAMS.values(), *corpus("sse"))
TOKENS = (
    *(
        b"\n\n",
        b"\r\n",
        b"\r",
        b"data: ",
        b"data:",
        b"event: error\n",
        b": \n",
        b"id: 1\n",
        b"retry: x\n",
        b"[DONE]",
        b"null",
    ),
    *(
        b"{}",
        b"[]",
        b"-1",
        b"1e999",
        b'""',
        b"true",
        b'"error"',
        b"\xe2\x80\xa8",
        b"\xff",
        b"\0",
        b'"index":9,',
        b'"choices":[],',
    ),
)


def parse(blocks: Sequence[bytes]) -> list[ServerEvent]:
    parser = EventParser()
    return [event for block in blocks for event in parser.feed(block)] + parser.end()


def expected(data: bytes) -> list[ServerEvent]:
    """By lines, in the plainest way."""
    events, name, lines = [], "", []
    for line in [*(line.removesuffix(b"\r") for line in data.split(b"\n")), b""]:
        field, _, value = line.partition(b":")
        if not line:
            events += [ServerEvent(name, b"\n".join(lines))] if lines else []
            name, lines = "", []
        elif field == b"data" and b":" in line:
            lines.append(value.removeprefix(b" "))
        elif field == b"event" and b":" in line:
            name = value.strip().decode("utf-8", "replace")
    return events


@pytest.mark.parametrize("data", SEEDS)
def test_the_corpus(data: bytes) -> None:
    assert parse([data]) == expected(data)


@effort(120)
@given(data=damaged(SEEDS, TOKENS), cuts=st.lists(st.integers(0, 400), max_size=6).map(sorted))
def test_no_cut_changes_an_event(data: bytes, cuts: list[int]) -> None:
    assert parse([data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]) == expected(
        data
    )


@pytest.mark.parametrize("api", FORMATS)
@effort(15)
@given(data=st.data())
async def test_it_is_an_answer_or_a_failure_of_the_provider(api: str, data: st.DataObject) -> None:
    body = data.draw(damaged((STREAMS[api], *corpus("sse")), TOKENS)).decode(errors="replace")
    kind = data.draw(st.sampled_from(["text/event-stream", "text/event-stream", "application/json"]))
    with StubProvider([Reply(body=body, headers={"content-type": kind})]) as stub:
        router = Router((make_provider(stub, api),), make_settings(first_content_s=5))
        outcome = await ask(router)
        await router.close()
    assert outcome.error is None or isinstance(outcome.error, LymaError)
    if outcome.error is None:
        assert isinstance(outcome.events[-1], Completed)
        json.dumps([str(event) for event in outcome.events])
    else:
        assert outcome.attempts
        assert all(attempt.class_ not in {"ok", "internal_error"} for attempt in outcome.attempts)
