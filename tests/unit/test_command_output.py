"""The output of a command as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.executor.output import HeadAndTail, Reader, overwritten, without_controls


def read(*pieces: bytes) -> str:
    reader = Reader()
    return "".join(reader.feed(piece) for piece in pieces) + reader.feed(b"", last=True)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain \xc3\xa9\n", "plain é\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b(B\x1b7\x1b=x", "x"),
        (b"a\x00b\x08c\x7f", "abc"),
        (b"tab\tline\r\n", "tab\tline\r\n"),
        (b"bad \xff\xfe end", "bad \ufffd\ufffd end"),
        (b"cut \xe2\x82", "cut \ufffd"),
        (b"unfinished \x1b[31", "unfinished 31"),
    ],
)
def test_bytes_become_text(raw, text):
    assert read(raw) == text


@given(
    st.lists(st.sampled_from([b"\x1b[31m", b"\x1b]0;t\x07", b"x", b"\xe2\x82\xac", b"\n", b"\x1b[0m", b"\xff"])),
    st.data(),
)
def test_how_it_is_cut_into_pieces_does_not_matter(parts, data):
    raw = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert read(*pieces) == read(raw)
    assert "\x1b" not in read(raw)


def test_an_endless_sequence_is_not_waited_for():
    reader = Reader()
    said = reader.feed(b"\x1b]" + b"x" * 100_000)
    assert len(said) > 90_000


@given(st.lists(st.text(max_size=50)), st.integers(2, 60))
def test_no_more_is_kept_than_the_limit(texts, limit):
    kept = HeadAndTail(limit)
    for text in texts:
        kept.feed(text)
    whole = "".join(texts)
    assert kept.total == len(whole)
    assert len(kept._head) + len(kept._tail) <= 3 * limit
    if len(whole) <= limit // 2 * 2:
        assert kept.text() == overwritten(whole)
    else:
        assert len(kept.text()) <= limit + 50


def test_head_and_tail_are_cut_at_lines():
    kept = HeadAndTail(40)
    for number in range(100):
        kept.feed(f"line {number}\n")
    said = kept.text()
    assert said.startswith("line 0\nline 1\n")
    assert said.endswith("line 98\nline 99\n")
    lines = said.split("\n")
    assert all(line.startswith(("line ", "[… ")) or not line for line in lines)
    (note,) = [line for line in lines if line.startswith("[")]
    shown = sum(len(line) + 1 for line in lines if line.startswith("line"))
    assert note == f"[… {kept.total - shown} characters left out …]"


def test_bars_of_progress_are_told_as_they_end():
    assert overwritten("10%\r50%\r100%\ndone\r\nend") == "100%\ndone\nend"
    assert overwritten("bar\r") == "bar\n"


def test_the_end_of_it():
    kept = HeadAndTail(1000)
    kept.feed("a" * 300 + "b" * 300)
    assert kept.end(10) == "b" * 10
    assert kept.end(400) == "a" * 100 + "b" * 300
    kept.feed("c" * 2000)
    assert kept.end(5) == "ccccc"


def test_what_is_no_control_stays():
    text = "".join(map(chr, range(0xA0, 0x2FF))) + " ~!\n\t"
    assert without_controls(text) == text
