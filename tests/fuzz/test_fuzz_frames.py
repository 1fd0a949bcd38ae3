"""The frames of JSON-RPC, however damaged and cut: the same frames, and a sound one is found again after any rubbish."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.editor.rpc.envelope import Invalid, Notification, Request, Response, open_body
from lyma_server.editor.rpc.framing import Body, Broken, FrameParser, Oversized, frame
from tests.fuzz.mutations import corpus, damaged, effort

ASK = b'{"jsonrpc":"2.0","id":1,"method":"lyma/ask","params":{"prompt":"h\xc3\xa9"}}'
SEEDS = (
    frame(ASK) + frame(b'{"jsonrpc":"2.0","method":"exit"}'),
    frame(b'{"jsonrpc":"2.0","id":"a","result":null}'),
    *corpus("frames"),
)
TOKENS = (
    *(
        b"Content-Length: 3\r\n\r\n",
        b"content-length:9\n\n",
        b"Content-Length: 99999\r\n\r\n",
        b"Content-Length: x\r\n",
        b"\r\n\r\n",
    ),
    *(
        b'"id":null,',
        b'"id":1e5,',
        b'"method":1,',
        b"[",
        b"{",
        b"\xff",
        b"\0",
        b'"\\ud800"',
        b"NaN",
        b'"jsonrpc":"1.0",',
    ),
)
LIMIT = 300
AFTER = frame(b'{"after":1}')


def parse(blocks: list[bytes]) -> list[object]:
    parser = FrameParser(LIMIT)
    found = [each for block in blocks for each in parser.feed(block)]
    return [
        each.content
        if isinstance(each, Body)
        else (each.length, each.head, each.tail)
        if isinstance(each, Oversized)
        else Broken
        for each in found
    ]


def check(data: bytes, cuts: list[int]) -> None:
    whole = parse([data])
    assert parse([data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]) == whole
    for each in whole:
        if isinstance(each, bytes):
            assert isinstance(open_body(each), (Request, Notification, Response, Invalid, list))


@pytest.mark.parametrize("data", SEEDS)
def test_the_corpus(data: bytes) -> None:
    check(data, list(range(len(data))))


@effort(120)
@given(data=damaged(SEEDS, TOKENS), cuts=st.lists(st.integers(0, 300), max_size=6).map(sorted))
def test_no_cut_changes_a_frame(data: bytes, cuts: list[int]) -> None:
    check(data, cuts)


@effort(100)
@given(rubbish=st.binary(max_size=200).filter(lambda data: b"content-length" not in data.lower()))
def test_rubbish_costs_nothing_that_follows_it(rubbish: bytes) -> None:
    assert parse([rubbish + b"\n" + AFTER])[-1] == json.dumps({"after": 1}, separators=(",", ":")).encode()
