"""The channel to a compiled agent takes whole, plain messages, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct

import pytest

from lyma_server.factory.channel import DEEPEST, LARGEST, Channel, ChannelFault, parse_message


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def frame(body: bytes, length: int | None = None) -> bytes:
    return struct.pack("!I", len(body) if length is None else length) + body


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


async def test_messages_go_both_ways_in_order(ends):
    channel, theirs = ends
    other = Channel(theirs)
    for message in ({"type": "hello", "text": "naïve \U0001f600 \0"}, {"n": -1, "f": 0.5, "deep": {"a": [None, True]}}):
        await channel.send(message)
        assert await other.receive() == message
        await other.send(message)
        assert await channel.receive() == message


async def test_large_messages_and_pieces(ends):
    channel, theirs = ends
    theirs.setblocking(False)
    largest = {"text": "x" * (LARGEST - len('{"text":""}'))}
    receiving = asyncio.ensure_future(channel.receive())
    loop = asyncio.get_running_loop()
    whole = frame(json.dumps(largest, separators=(",", ":")).encode())
    for piece in (whole[:1], whole[1:5], whole[5:]):
        await loop.sock_sendall(theirs, piece)
    assert await receiving == largest


async def test_many_that_send_at_once_do_not_mix(ends):
    channel, theirs = ends
    other = Channel(theirs)
    sent = [{"number": number, "text": "y" * 100_000} for number in range(8)]
    sending = asyncio.gather(*map(channel.send, sent))
    assert [await other.receive() for _ in sent] == sent
    await sending


async def test_the_end(ends):
    channel, theirs = ends
    theirs.send(frame(b'{"last":1}'))
    theirs.close()
    assert await channel.receive() == {"last": 1}
    assert await channel.receive() is None
    with pytest.raises(ChannelFault):
        await channel.send({"a": "b" * 1_000_000})


HOSTILE = {
    "bad UTF-8": frame(b'{"a":"\xff"}'),
    "half a surrogate pair": frame(b'{"a":"\\ud800"}'),
    "half a surrogate pair as a name": frame(b'{"\\udc00":1}'),
    "duplicate names": frame(b'{"a":1,"a":2}'),
    "duplicate names inside": frame(b'{"a":[{"b":1,"b":1}]}'),
    "NaN": frame(b'{"a":NaN}'),
    "Infinity": frame(b'{"a":-Infinity}'),
    "too large a fraction": frame(b'{"a":1e999}'),
    "too large an integer": frame(b'{"a":9007199254740993}'),
    "an endless integer": frame(b'{"a":' + b"9" * 100_000 + b"}"),
    "too deep": frame(nested(DEEPEST + 1)),
    "very deep": frame(b"[" * 500_000),
    "deep objects": frame(b'{"a":' * 100_000),
    "a list": frame(b"[]"),
    "a string": frame(b'"hello"'),
    "null": frame(b"null"),
    "nothing": frame(b""),
    "no JSON": frame(b"hello"),
    "two at once": frame(b'{"a":1}{"b":2}'),
    "a byte order mark": frame(b'\xef\xbb\xbf{"a":1}'),
    "UTF-16": frame('{"a":1}'.encode("utf-16")),
    "control characters": frame(b'{"a":"\n"}'),
    "too long": frame(b"", LARGEST + 1),
    "the longest": frame(b"", 0xFFFFFFFF),
    "cut in the body": frame(b'{"a":', 100),
    "cut in the length": b"\0\0",
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_is_odd_is_a_fault(ends, sent):
    channel, theirs = ends
    theirs.setblocking(False)

    async def send():
        await asyncio.get_running_loop().sock_sendall(theirs, sent)
        theirs.shutdown(socket.SHUT_WR)

    sending = asyncio.ensure_future(send())
    with pytest.raises(ChannelFault):
        await channel.receive()
    sending.cancel()


def test_just_not_too_deep():
    assert parse_message(nested(DEEPEST))


async def test_after_a_cut_message_nothing_more_is_taken(ends):
    channel, theirs = ends
    theirs.send(b"\0\0")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await channel.receive()
    theirs.send(b"\0\2{}" + frame(b"{}"))
    with pytest.raises(ChannelFault, match="cut off"):
        await channel.receive()


async def test_no_more_is_read_than_one_message(ends):
    channel, theirs = ends
    theirs.send(frame(b'{"a":1}') + frame(b'{"b":2}'))
    assert await channel.receive() == {"a": 1}
    assert await channel.receive() == {"b": 2}


async def test_descriptors_that_come_along_are_dropped(ends):
    channel, theirs = ends
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    socket.send_fds(theirs, [frame(b"{}")], [writing])
    os.close(writing)
    assert await channel.receive() == {}
    assert os.read(reading, 1) == b"", "nobody holds the other end any more"
    os.close(reading)


async def test_what_is_too_large_to_send_is_our_mistake(ends):
    channel, _ = ends
    with pytest.raises(ValueError, match="too large"):
        await channel.send({"a": "x" * LARGEST})
    with pytest.raises(ValueError, match="JSON"):
        await channel.send({"a": float("nan")})
