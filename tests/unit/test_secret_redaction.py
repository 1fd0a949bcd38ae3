"""No known secret leaves, in no spelling, whole or in pieces."""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
import threading
import time
import urllib.parse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lyma_server.secret import MARK, SHORTEST_KNOWN, VENDOR_PREFIXES, Redactor, Secret

OPENAI = "sk-proj-9fJ2kLmN4pQrS7tUvWxY"
ANTHROPIC = "sk-ant-api03-Zz8yXx7wVv6uTt5sRr4q"
ODD = 'p@ss/word+with "quotes" & ünïcode \\ 100%'


def urlsafe(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()


SPELLINGS = {
    "raw": lambda value: value,
    "in JSON": json.dumps,
    "in JSON, not only ASCII": lambda value: json.dumps(value, ensure_ascii=False),
    "in JSON as PHP writes it": lambda value: json.dumps(value).replace("/", r"\/"),
    "in JSON as Go writes it": lambda value: re.sub("[<>&]", lambda hit: f"\\u{ord(hit[0]):04x}", json.dumps(value)),
    "in a URL": lambda value: urllib.parse.quote(value, safe=""),
    "in a URL, lower case": lambda value: re.sub("%..", lambda hit: hit[0].lower(), urllib.parse.quote(value, safe="")),
    "in a path": urllib.parse.quote,
    "in a form": urllib.parse.quote_plus,
    **{
        f"{name}, {shift} bytes in, {after} after": lambda value, encode=encode, shift=shift, after=after: encode(
            b"u:" * shift + value.encode() + b"!" * after
        )
        for name, encode in (("base64", lambda data: base64.b64encode(data).decode()), ("urlsafe", urlsafe))
        for shift in range(3)
        for after in range(3)
    },
}


def leaks(text: str, value: str) -> list[str]:
    """Every spelling of `value` in `text`, found by decoding the text rather than by encoding the value."""
    found = [text, urllib.parse.unquote(text), urllib.parse.unquote_plus(text)]
    for alphabet in (b"+/", b"-_"):
        for start in range(len(text)):
            piece = text[start : start + 4 * (len(text) // 4)]
            piece = piece[: len(piece) // 4 * 4]
            try:
                found.append(base64.b64decode(piece, alphabet, validate=True).decode("latin-1"))
            except ValueError:
                continue
    return [each for each in found if value in each]


@pytest.mark.parametrize("value", [OPENAI, ANTHROPIC, "no-vendor-at-all-here"])
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_redacted(spell, value):
    text = spell(value)
    assert leaks(text, value)
    redacted = Redactor([Secret(value)]).redact(f"before {text} after")
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert MARK in redacted
    assert not leaks(redacted, value)


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_value_with_odd_characters_is_redacted_too(spell):
    redacted = Redactor([Secret(ODD)]).redact(spell(ODD))
    assert MARK in redacted
    assert ODD[2:12] not in redacted
    assert len(redacted) <= len(MARK) + 12  # what the neighbours share with the first and last characters of base64


@pytest.mark.parametrize("prefix", [*VENDOR_PREFIXES, ""])
def test_a_key_that_is_cut_short_is_known_by_its_head(prefix):
    key = prefix + "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0"
    head = max(len(prefix) + 8, 0) if prefix else SHORTEST_KNOWN
    redactor = Redactor([Secret(key)])
    for length in range(head, len(key) + 1):
        assert redactor.redact(f"<{key[:length]}>") == f"<{MARK}>"
        assert redactor.redact(f"<{key[:length]}…>") == f"<{MARK}…>"
    assert redactor.redact(f"<{key[: head - 1]}>") == f"<{key[: head - 1]}>"


@pytest.mark.parametrize("prefix", VENDOR_PREFIXES)
def test_the_prefix_alone_is_innocent(prefix):
    text = f"keys begin with {prefix}, and others with {prefix}12345678"
    assert Redactor([Secret(prefix + "Q7w8E9r0T1y2U3i4")]).redact(text) == text


def test_longer_prefixes_come_before_those_that_they_begin_with():
    for position, prefix in enumerate(VENDOR_PREFIXES):
        assert not any(later.startswith(prefix) for later in VENDOR_PREFIXES[position + 1 :])


def test_short_values_are_left_alone():
    assert Redactor([Secret("a" * 15)]).redact("a" * 15) == "a" * 15
    assert Redactor([Secret("a" * 16)]).redact("a" * 16) == MARK


def test_overlapping_secrets_become_one_mark_and_neighbours_two():
    first, second = "abcdefgh12345678", "12345678ijklmnop"
    redactor = Redactor([Secret(first), Secret(second)])
    assert redactor.redact("abcdefgh12345678ijklmnop") == MARK
    assert redactor.redact(first + second) == MARK * 2


def test_a_secret_inside_another_and_one_that_begins_like_another():
    redactor = Redactor([Secret("a-secret-of-twenty-x"), Secret("a-secret-of-twenty-x-and-more")])
    assert redactor.redact("(a-secret-of-twenty-x-and-more)") == f"({MARK})"
    assert redactor.redact("(a-secret-of-twenty-x)") == f"({MARK})"


def test_a_short_key_that_a_longer_head_begins_with():
    redactor = Redactor([Secret("github_pat_12345"), Secret("github_pat_1234567890")])
    assert redactor.redact("github_pat_12345.") == f"{MARK}."
    assert redactor.redact("github_pat_12345678.") == f"{MARK}."


def test_nothing_known_changes_nothing():
    redactor = Redactor()
    assert redactor.redact("text") == "text"
    assert redactor.stream().feed("text") == "text"
    assert not redactor.finds("text")


def test_finds_says_whether_there_is_one():
    redactor = Redactor([Secret(OPENAI)])
    assert redactor.finds(f"x={OPENAI}")
    assert not redactor.finds("x=sk-proj-")


def test_a_secret_that_is_added_is_known_in_streams_that_are_under_way():
    redactor = Redactor()
    stream = redactor.stream()
    assert stream.feed("nothing yet ") == "nothing yet "
    redactor.add(Secret(OPENAI))
    assert stream.feed(OPENAI) + stream.flush() == MARK


def test_adding_from_several_threads_loses_none():
    secrets = [Secret(f"a-secret-with-number-{number:03}") for number in range(40)]
    redactor = Redactor()
    threads = [threading.Thread(target=redactor.add, args=(secret,)) for secret in secrets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(redactor.redact(secret.reveal()) == MARK for secret in secrets)


def test_a_stream_holds_back_what_may_become_a_secret_and_no_more():
    stream = Redactor([Secret(OPENAI)]).stream()
    assert stream.feed("the key is sk-pr") == "the key is "
    assert stream.feed("etty long, sk-") == "sk-pretty long, "
    assert stream.feed(OPENAI[3:-1]) == ""
    assert stream.feed(OPENAI[-1:]) == MARK
    assert stream.feed(" and sk-proj-9fJ2") == " and "
    assert stream.flush() == "sk-proj-9fJ2"
    assert stream.flush() == ""


def test_a_stream_marks_a_long_overlap_once():
    stream = Redactor([Secret("a" * 16)]).stream()
    said = "".join(stream.feed("a") for _ in range(100)) + stream.feed("b") + stream.flush()
    assert said == MARK + "b"


ALPHABET = "sk-proant/+ab=1"
secrets_in_texts = st.lists(
    st.builds(
        str.__add__, st.sampled_from(["", "sk-", "sk-proj-", "ss", "aa"]), st.text(ALPHABET, min_size=14, max_size=24)
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def chunked_texts(draw):
    """Secrets, and a text made of pieces of them and of others, cut at random."""
    values = draw(secrets_in_texts)
    whole = st.sampled_from(values)
    part = st.builds(lambda value, a, b: value[min(a, b) : max(a, b)], whole, st.integers(0, 32), st.integers(0, 32))
    spelled = st.builds(lambda value, spell: spell(value), whole, st.sampled_from(list(SPELLINGS.values())))
    text = "".join(draw(st.lists(st.one_of(whole, part, spelled, st.text(ALPHABET, max_size=6)), max_size=8)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return values, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(chunked_texts())
@example((["a" * 16], ["a" * 15, "a" * 20, "b"]))
@example((["sk-" + "a" * 13], ["sk-aaaaaaaa", "sk-aaaaaaaaaa", "s"]))
def test_redacting_in_pieces_is_redacting_the_whole(case):
    values, chunks = case
    redactor = Redactor(map(Secret, values))
    stream = redactor.stream()
    pieces = [stream.feed(chunk) for chunk in chunks] + [stream.flush()]
    assert "".join(pieces) == redactor.redact("".join(chunks))


@given(chunked_texts())
def test_no_secret_ever_leaves(case):
    values, chunks = case
    stream = Redactor(map(Secret, values)).stream()
    said = ""
    for chunk in [*chunks, None]:
        said += stream.flush() if chunk is None else stream.feed(chunk)
        for value in values:
            if len(value) >= SHORTEST_KNOWN:
                assert not any(value in between for between in said.split(MARK))


def record_with(message: str, *args: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord("lyma", logging.INFO, __file__, 1, message, args, None)
    vars(record).update(extra)
    return record


def test_log_records_lose_secrets_in_message_arguments_traceback_and_stack():
    try:
        raise ValueError(f"the server said {OPENAI}")
    except ValueError:
        failure = sys.exc_info()
    record = record_with(f"key %s, again {OPENAI}", OPENAI, exc_info=failure, stack_info=f"stack {OPENAI}")
    handler = logging.Handler()
    handler.addFilter(Redactor([Secret(OPENAI)]).log_filter())
    assert handler.filter(record)
    text = logging.Formatter("%(message)s").format(record)
    assert OPENAI not in text
    assert text.count(MARK) == 4
    assert "ValueError" in text
    assert not any(OPENAI in str(value) for value in vars(record).values())


def test_log_records_without_secrets_stay_as_they_are():
    record = record_with("%d of %d", 1, 2)
    assert Redactor([Secret(OPENAI)]).log_filter().filter(record)
    assert record.getMessage() == "1 of 2"
    assert record.exc_text is None


def test_a_chunk_without_secrets_costs_little():
    """The promise is 10 microseconds a chunk; ten times that leaves room for a machine with other work."""
    stream = Redactor(Secret(f"sk-proj-{number:0150}") for number in range(20)).stream()
    chunks = [" some", " words", " as", " they", " come"] * 200
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        for chunk in chunks:
            stream.feed(chunk)
        rounds.append((time.perf_counter() - begun) / len(chunks))
    assert min(rounds) < 100e-6
