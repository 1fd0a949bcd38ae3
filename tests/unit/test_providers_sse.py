"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.router.providers.sse import EVENT_LIMIT, EventParser, EventTooLong, ServerEvent


def parse(*blocks: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for block in blocks for event in parser.feed(block)] + parser.end()


def test_events_have_names_and_data() -> None:
    assert parse(b"event: ping\ndata: {}\n\n: comment\n\ndata: a\ndata:b\n\n") == [
        ServerEvent("ping", b"{}"),
        ServerEvent("", b"a\nb"),
    ]


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert parse(b"data: [DONE]") == [ServerEvent("", b"[DONE]")]


def test_comments_ids_and_retries_are_no_events_and_not_stray() -> None:
    parser = EventParser()
    assert parser.feed(b": keep-alive\r\n\r\nid: 7\r\nretry: 10\r\n\r\n") == []
    assert parser.stray == b""


def test_what_is_no_event_is_kept_as_stray() -> None:
    parser = EventParser()
    parser.feed(b"upstream connect error\n")
    assert parser.stray == b"upstream connect error\n"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"x" * (1 << 20), id="a line"),
        pytest.param(b"data: " + b"x" * (1 << 20) + b"\n", id="long lines of one event"),
        pytest.param(b"data:\n" * (1 << 16), id="empty lines of one event"),
    ],
)
def test_an_event_without_an_end_is_refused(block: bytes) -> None:
    parser = EventParser()
    parser.feed(b"data: ")
    blocks = EVENT_LIMIT // (1 << 20) + 1
    with pytest.raises(EventTooLong):
        assert [parser.feed(block) for _ in range(blocks)] == []


def test_a_long_stream_of_short_events_is_not_an_endless_one() -> None:
    parser = EventParser()
    block = b"data: " + b"x" * (1 << 20) + b"\n\n"
    assert sum(len(parser.feed(block)) for _ in range(20)) == 20


@settings(max_examples=60)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4), st.sampled_from([b"\n", b"\r\n"]), st.data())
def test_any_text_survives_any_cut(texts: list[str], end: bytes, data: st.DataObject) -> None:
    payloads = [json.dumps({"t": text}, ensure_ascii=False).encode() for text in texts]
    stream = b"".join(b"data: " + payload + end + end for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    blocks = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [json.loads(event.data)["t"] for event in parse(*blocks)] == texts
