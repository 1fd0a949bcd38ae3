"""The channel to a compiled agent, whatever comes over it: strict messages in their order, perhaps a fault, and nothing else."""

from __future__ import annotations

import asyncio
import json
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.factory.channel import Channel, ChannelFault
from tests.fuzz.mutations import corpus, damaged, effort

TOKENS = (
    *(b"\0\0\0\2{}", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\x10\0\1", b"NaN", b"1e999", b"-0", b"9" * 17, b'"\\ud800"'),
    *(b'{"a":1,"a":2}', b"[" * 70, b"]" * 70, b"\xff", b"\xef\xbb\xbf", b"true", b"\0"),
)


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack("!I", len(body)) + body for body in bodies)


SEEDS = (
    framed(b'{"type":"model","id":1,"messages":[{"role":"user","text":"caf\xc3\xa9"}]}', b'{"type":"cancel"}'),
    framed(b'{"type":"tool","id":2,"name":"fs.read","arguments":{"path":"a","n":[1,2.5,null,true]}}'),
    framed(b"{}"),
    *corpus("channel"),
)


async def received(data: bytes, cuts: list[int]) -> tuple[list[object], bool]:
    """The messages, and whether they ended with a fault."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel, found = Channel(ours), []
        sending = asyncio.create_task(send(theirs, data, cuts))
        try:
            async with asyncio.timeout(20):
                while (message := await channel.receive()) is not None:
                    found.append(message)
        except ChannelFault:
            return found, True
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return found, False


async def send(end: socket.socket, data: bytes, cuts: list[int]) -> None:
    end.setblocking(False)
    loop = asyncio.get_running_loop()
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        await loop.sock_sendall(end, data[start:stop])
        await asyncio.sleep(0)
    end.shutdown(socket.SHUT_WR)


def expected(data: bytes) -> tuple[list[object], bool]:
    """The same, by what the format says and nothing of the code under test but its limits."""
    found: list[object] = []
    while data:
        if len(data) < 4:
            return found, True
        (length,) = struct.unpack("!I", data[:4])
        body, data = data[4 : 4 + length], data[4 + length :]
        if length > 1 << 20 or len(body) < length:
            return found, True
        try:
            message = strict(body)
        except (ValueError, RecursionError):
            return found, True
        found.append(message)
    return found, False


def strict(body: bytes) -> object:
    """A JSON object without doubles, of whole characters and numbers that everybody reads alike."""

    def pairs(given_pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in given_pairs}) < len(given_pairs):
            raise ValueError
        return dict(given_pairs)

    def refuse(_word: str) -> None:
        raise ValueError

    def whole(digits: str) -> int:
        if len(digits.lstrip("-")) > 16 or not -(2**53) < int(digits) < 2**53:
            raise ValueError
        return int(digits)

    value = json.loads(body.decode(), object_pairs_hook=pairs, parse_constant=refuse, parse_int=whole)
    if not isinstance(value, dict) or depth(value) > 64:
        raise ValueError
    json.dumps(value, allow_nan=False)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@pytest.mark.parametrize("data", SEEDS)
async def test_the_corpus(data: bytes) -> None:
    assert await received(data, []) == expected(data)


@effort(150)
@given(data=damaged(SEEDS, TOKENS), cuts=st.lists(st.integers(0, 200), max_size=4).map(sorted))
async def test_messages_or_a_fault(data: bytes, cuts: list[int]) -> None:
    assert await received(data, [cut for cut in cuts if cut <= len(data)]) == expected(data)
