"""A provider that sends without an end costs an attempt, and never the memory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import zlib
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.router.database import Database
from lyma_server.router.providers import connect
from lyma_server.router.providers.connect import PACKED_ERROR_LIMIT, build_http_client
from lyma_server.router.router import Router
from lyma_server.router.state import State
from tests.routing import FORMATS, ask, make_keys, make_provider, make_settings
from tests.stub_provider import Reply, StubProvider, fail, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HEAD = "HTTP/1.1 {} Stub\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n{}\r\n"
MEBIBYTE = 1 << 20


@asynccontextmanager
async def flood(status: int, block: bytes, headers: str = "") -> AsyncIterator[str]:
    """A server that answers with `block` again and again until the client leaves; its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD.format(status, headers).encode())
            while True:
                writer.write(b"%x\r\n%b\r\n" % (len(block), block))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(("status", "class_"), [(429, "rate_limit"), (500, "server_error"), (400, "bad_request")])
async def test_an_error_without_an_end_is_an_error_like_any_other(status: int, class_: str, api: str) -> None:
    async with flood(status, b"{" * 65536) as url, asyncio.timeout(20):
        router = Router((make_provider(url, api),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route[0][0] == class_


@pytest.mark.parametrize("block", [b"data: " + b"x" * 65536 + b"\n", b"data:\n" * 8000], ids=["long", "short"])
async def test_an_event_without_an_end_is_no_answer(block: bytes) -> None:
    async with flood(200, block) as url, asyncio.timeout(30):
        router = Router((make_provider(url),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route[0][0] == "protocol_error"


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("stays", [False, True], ids=["cut", "silent"])
async def test_a_rate_limit_whose_body_never_ends_is_still_one(monkeypatch, *, stays: bool, api: str) -> None:
    monkeypatch.setattr(connect, "ERROR_PATIENCE_S", 0.2)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD.format(429, "retry-after: 10800\r\n").encode() + b"8\r\n{")
        if stays:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, asyncio.timeout(20):
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        router = Router((make_provider(url, api),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == [("rate_limit", "fail")]
    assert (outcome.attempts[0].retry_after_ms or 0) >= 10_800_000


async def test_an_error_is_not_unpacked_beyond_measure() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b"\0" * MEBIBYTE) for _ in range(256)) + packer.flush()
    assert len(packed) > 2 * PACKED_ERROR_LIMIT
    async with flood(400, packed, "content-encoding: gzip\r\n") as url, asyncio.timeout(20):
        client = build_http_client(5)
        response = await client.get(url)
        await client.aclose()
    assert MEBIBYTE < len(response.content) < 70 * MEBIBYTE


async def test_an_answer_is_not_cut() -> None:
    async with flood(200, b"x" * 65536) as url, asyncio.timeout(20):
        client = build_http_client(5)
        async with client.stream("GET", url) as response:
            size = 0
            async for block in response.aiter_bytes():
                size += len(block)
                if size > 4 * MEBIBYTE:
                    break
        await client.aclose()
    assert size > 4 * MEBIBYTE


@pytest.mark.parametrize(("status", "class_"), [(301, "wrong_url"), (308, "wrong_url"), (302, "unknown")])
async def test_a_redirect_is_not_followed(status: int, class_: str) -> None:
    with StubProvider([say("with the key")]) as elsewhere:
        moved = fail(status, headers={"location": f"{elsewhere.openai_url}/chat/completions"})
        with StubProvider([moved]) as stub:
            router = Router((make_provider(stub, keys=make_keys(1)),), make_settings())
            outcome = await ask(router)
            await router.close()
        assert elsewhere.requests == []
    assert outcome.route[0][0] == class_


def streamed(*events: dict[str, Any]) -> Reply:
    """Each event as it is, under the name that Anthropic would give it."""
    text = "".join(f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=text, headers={"content-type": "text/event-stream"})


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def block(index: Any, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
NO_TEXT = {
    "refusal": ("openai", [chunk(refusal=5), chunk("stop")]),
    "name": ("openai", [chunk(tool_calls=[{"id": "c", "function": {"name": 7}}]), chunk("tool_calls")]),
    "text": ("anthropic", [block(0, type="text", text={"a": 1}), STOPPED]),
    "tool": ("anthropic", [block(0, type="tool_use", id="c", name=["x"]), STOPPED]),
    "signature": ("anthropic", [block(0, type="thinking", thinking="", signature=5), STOPPED]),
    "redacted": ("anthropic", [block(0, type="redacted_thinking", data=5), STOPPED]),
    "indices": ("anthropic", [block(0, type="text", text=""), block("1", type="text", text=""), STOPPED]),
}


@pytest.mark.parametrize("case", NO_TEXT)
async def test_what_should_be_text_and_is_not_is_this_providers_failure(case: str) -> None:
    api, events = NO_TEXT[case]
    with StubProvider([streamed(*events)]) as first, StubProvider([say("whole")]) as second:
        router = Router((make_provider(first, api), make_provider(second, name="two")), make_settings())
        outcome = await ask(router)
        await router.close()
    assert (outcome.error, outcome.text) == (None, "whole")
    assert outcome.route == [("protocol_error", "retry"), ("protocol_error", "fallback"), ("ok", "done")]


@pytest.mark.parametrize("api", FORMATS)
async def test_a_count_that_no_ledger_holds_loses_no_row(tmp_path: Path, api: str) -> None:
    with StubProvider([say("a", input_tokens=10**25, output_tokens=7)]) as stub:
        router = Router((make_provider(stub, api),), make_settings(), State(Database(tmp_path / "state.db")))
        await ask(router)
        await router.close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        assert connection.execute("SELECT input_tokens, output_tokens FROM attempts").fetchall() == [(0, 7)]
