"""Bytes into frames, whatever the client makes of headers."""

from __future__ import annotations

import pytest

from lyma_server.editor.rpc.envelope import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Invalid,
    Notification,
    Request,
    Response,
    open_body,
    open_oversized,
)
from lyma_server.editor.rpc.framing import Body, Broken, FrameParser, Oversized, frame

GOOD = frame(b'{"good":1}')


def parse(data: bytes, limit: int = 1000, step: int | None = None) -> list[object]:
    parser = FrameParser(limit)
    frames = []
    for start in range(0, len(data), step or len(data)):
        frames += parser.feed(data[start : start + (step or len(data))])
    return [found.content if isinstance(found, Body) else type(found) for found in frames]


@pytest.mark.parametrize("step", [1, 2, 7, 64, None])
def test_frames_do_not_depend_on_how_bytes_arrive(step: int | None) -> None:
    data = frame(b"a") + frame("né\r\n\r\n".encode()) + frame(b"") + frame(b"x" * 300)
    assert parse(data, step=step) == [b"a", "né\r\n\r\n".encode(), b"", b"x" * 300]


@pytest.mark.parametrize(
    "head",
    [
        b"content-length:5\r\n\r\n",
        b"CONTENT-LENGTH :  5  \r\n\r\n",
        b"Content-Length: 5\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 5\r\n\r\n",
        b"no colon here\r\nContent-Length: 5\r\n\r\n",
        b"\r\n\r\nContent-Length: 5\r\n\r\n",
    ],
)
def test_headers_are_read_kindly(head: bytes) -> None:
    assert parse(head + b"12345" + GOOD) == [b"12345", b'{"good":1}']


@pytest.mark.parametrize(
    "rubbish",
    [
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -4\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b'left over"}',
        b"line\nline\nline",
        b"y" * 200_000,
    ],
)
@pytest.mark.parametrize("step", [None, 1000])
def test_rubbish_is_told_once_and_costs_no_message(rubbish: bytes, step: int | None) -> None:
    assert parse(rubbish + GOOD + GOOD, step=step) == [Broken, b'{"good":1}', b'{"good":1}']


def test_a_body_over_the_limit_is_skipped_to_its_last_byte() -> None:
    assert parse(frame(b"z" * 5000) + GOOD, limit=4999, step=100) == [Oversized, b'{"good":1}']
    assert parse(frame(b"z" * 5000), limit=5000) == [b"z" * 5000]


PADDING = b"p" * 10_000


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":8,"x":"%b"}}' % PADDING, 7),
        (b'{ "id" : "a\\"b" , "params":"%b"}' % PADDING, 'a"b'),
        (b'{"params":{"id":8,"x":"%b","id":9},"id":7,"method":"m"}' % PADDING, 7),
        (b'{"params":{"id":8,"x":"%b","id":9}}' % PADDING, None),
        (b'{"jsonrpc":"2.0","id":null,"x":"%b"}' % PADDING, None),
        (b"[%b]" % PADDING, None),
    ],
)
def test_the_id_of_an_oversized_request_is_found_at_either_end(body: bytes, identity: object) -> None:
    (found,) = FrameParser(100).feed(frame(body))
    invalid = open_oversized(found, 100)
    assert (invalid.id, invalid.code) == (identity, INVALID_REQUEST)


@pytest.mark.parametrize(
    ("body", "kind", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', Request, 1),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m","more":1}', Request, 1.5),
        (b'{"jsonrpc":"2.0","id":"","method":"m"}', Request, ""),
        (b'{"jsonrpc":"2.0","method":"m"}', Notification, None),
        (b'{"jsonrpc":"2.0","id":1,"result":null}', Response, 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', Response, 1),
        (b'{"jsonrpc":"2.0","id":1}', Invalid, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', Invalid, 1),
        (b'{"id":"x","method":"m"}', Invalid, "x"),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', Invalid, 1),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', Invalid, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', Invalid, None),
        (b"3", Invalid, None),
    ],
)
def test_a_body_is_one_of_four(body: bytes, kind: type, identity: object) -> None:
    found = open_body(body)
    assert isinstance(found, kind)
    assert getattr(found, "id", None) == identity


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff{}", b'{"a":NaN}', b"[" * 100_000, b'{"a":%b}' % (b"9" * 5000), b'"\xed\xa0\x80"'],
)
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    found = open_body(body)
    assert isinstance(found, Invalid)
    assert (found.id, found.code) == (None, PARSE_ERROR)


def test_half_a_surrogate_pair_becomes_text_that_can_be_written() -> None:
    found = open_body(rb'{"jsonrpc":"2.0","id":1,"method":"m","params":["\ud800x","\ud83d\ude00",{"\udc00":1}]}')
    assert found.params == ["\ufffdx", "😀", {"\ufffd": 1}]
