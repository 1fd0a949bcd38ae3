"""Reading an answer however it ends. The response is a stand-in: real servers do not end in all these ways on demand."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest

from lyma_server.router.chat import Completed, Origin, TextDelta
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.providers.exchange import ANSWER_LIMIT, Exchange
from lyma_server.router.providers.openai import OpenAIWire
from lyma_server.router.providers.openai_stream import OpenAIAssembler
from lyma_server.router.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TEXT = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
FINISH = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


class Response:
    """Gives blocks of bytes; an exception among them is raised, null hangs for ever."""

    def __init__(self, *blocks: bytes | Exception | None) -> None:
        self._blocks = blocks

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for block in self._blocks:
            if block is None:
                await asyncio.Event().wait()
            elif isinstance(block, Exception):
                raise block
            else:
                yield block


async def read(*blocks: bytes | Exception | None) -> list[Any]:
    loop = asyncio.get_running_loop()
    patience = Patience(5, 5, 0.02, loop.time() + 60, finishing_s=0.02)
    watchdog = Watchdog(patience)
    exchange = Exchange("vendor", OpenAIAssembler(Origin("p", "m")), watchdog, OpenAIWire().is_last)
    try:
        return [event async for event in exchange.read(cast("httpx2.Response", Response(*blocks)))]
    finally:
        watchdog.stop()


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param([FINISH, DONE], id="as it should"),
        pytest.param([FINISH, DONE, None], id="done, and the connection is held"),
        pytest.param([FINISH, DONE, httpx2.ReadError("cut")], id="done, and cut"),
        pytest.param([FINISH, None], id="a reason, then silence"),
        pytest.param([FINISH, httpx2.ReadError("cut")], id="a reason, then cut"),
        pytest.param([FINISH], id="a reason, then the end"),
        pytest.param([FINISH.rstrip()], id="without its blank line"),
        pytest.param([FINISH.rstrip(), b"\n\n", DONE.rstrip()], id="the mark without its blank line"),
        pytest.param([b": comment\n\n", FINISH, b"\n\n" + DONE], id="with comments and blank lines"),
    ],
)
async def test_an_answer_with_a_reason_is_whole_however_it_ends(ending: list[bytes | Exception | None]) -> None:
    first, last = await read(b"\n\n", TEXT, *ending)
    assert first == TextDelta("a")
    assert isinstance(last, Completed)
    assert last.finish == "end_turn"


@pytest.mark.parametrize(
    ("blocks", "phase", "transport"),
    [
        ([TEXT], "stream", ""),
        ([TEXT, DONE], "stream", ""),
        ([TEXT, httpx2.ReadError("cut")], "stream", "cut"),
        ([TEXT, None], "stall", "timeout"),
        ([b"data: {bro\n\n"], "stream", "protocol_error"),
        ([b"event: error\ndata: plain words\n\n"], "stream", ""),
        ([b"data: \xff\xfe\n\n"], "stream", "protocol_error"),
        ([b"data: " + b"x" * (17 << 20)], "stream", "protocol_error"),
        ([b"upstream error\n"], "body", ""),
        ([b"<html></html>"], "body", ""),
        ([b'{"choices": ', b"[]}"], "body", ""),
        ([], "stream", ""),
    ],
)
async def test_what_has_no_reason_has_failed(blocks: list[Any], phase: str, transport: str) -> None:
    with pytest.raises(AttemptFailed) as caught:
        await read(*blocks)
    assert (caught.value.failure.phase, caught.value.failure.transport) == (phase, transport)


async def test_a_whole_answer_in_pieces_is_read_to_its_end() -> None:
    body = b'\n\n{"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}'
    events = await read(b"\n", body[:10], body[10:30], body[30:])
    assert events[0] == TextDelta("whole")


async def test_an_answer_without_an_end_is_given_up() -> None:
    text = json.dumps({"choices": [{"delta": {"content": "x" * (1 << 20)}}]}).encode()
    with pytest.raises(AttemptFailed) as caught:
        await read(*[b"data: " + text + b"\n\n"] * (ANSWER_LIMIT // (1 << 20) + 1))
    assert caught.value.failure.transport == "protocol_error"
