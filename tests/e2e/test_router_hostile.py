"""A provider that sends without an end costs an attempt, and never the memory."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from lyma_server.router.providers.connect import PACKED_ERROR_LIMIT, build_http_client
from lyma_server.router.router import Router
from tests.routing import FORMATS, ask, make_keys, make_provider, make_settings
from tests.stub_provider import StubProvider, fail, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
