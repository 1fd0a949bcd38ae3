"""Secrets: a value that hides itself, and the removal of every known one from text.

A text is redacted by its spellings. Each known value is looked for as it is, base64-encoded at all three alignments,
URL-encoded and escaped as JSON; and each of those also when it is cut short, as long as its head is there: the vendor's
prefix and 8 characters more. What is found is replaced by one mark, overlapping finds by one mark together.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
import threading
import urllib.parse
from typing import TYPE_CHECKING, Final, NoReturn

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MARK: Final = "[redacted]"

SHORTEST_KNOWN: Final = 16
"""In characters. Shorter values are not redacted: they are found in innocent text."""

BEYOND_PREFIX: Final = 8
"""How many characters after the vendor's prefix are enough to know a key by."""

SET_DUMPABLE: Final = 4
"""The option of prctl (include/uapi/linux/prctl.h)."""

SHOWN: Final = 4
"""How many characters a masked value shows at most."""

VENDOR_PREFIXES: Final = (
    "sk-ant-admin01-",
    "sk-ant-api03-",
    "sk-ant-oat01-",
    "sk-ant-",
    "sk-svcacct-",
    "sk-admin-",
    "sk-or-v1-",
    "sk-kimi-",
    "sk-proj-",
    "sk-",
    "github_pat_",
    "glpat-",
    "nvapi-",
    "pplx-",
    "AIza",
    "ghp_",
    "gsk_",
    "xai-",
    "hf_",
)
"""Longest first among those that begin alike. They say whose a key is, not which, so they alone are never redacted."""


class Secret:
    """A value that no repr, format, pickle or JSON encoder gives away."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself. Only for handing it to its provider, for writing the configuration and for hashing."""
        return self._value

    @property
    def masked(self) -> str:
        """The value for people: an ellipsis and its last 4 characters, or the ellipsis alone where it is short."""
        return f"…{self._value[-SHOWN:]}" if len(self._value) >= SHORTEST_KNOWN else "…"

    @property
    def fingerprint(self) -> str:
        """The first 12 hexadecimal digits of its SHA-256: names a key in the state without giving it away."""
        import hashlib

        return hashlib.sha256(_encoded(self._value)).hexdigest()[:12]

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret is never pickled")


def as_secret(value: str | Secret) -> Secret:
    """Hide a plain value; leave a hidden one as it is."""
    return value if isinstance(value, Secret) else Secret(value)


class Redactor:
    """Knows secrets and removes them from text. Safe to use from several threads."""

    mark: Final = MARK

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._adding = threading.Lock()
        self._known: frozenset[Secret] = frozenset()
        self._matcher: _Matcher | None = None  # made at first use: it takes milliseconds that a start can do without
        self._learn(secrets)

    def add(self, secret: Secret) -> None:
        """Know one more secret, also in the streams that are under way. Values under 16 characters are ignored."""
        self._learn((secret,))

    def redact(self, text: str) -> str:
        """Return `text` with every known secret replaced by the mark."""
        matcher = self._current()
        return _replaced(text, 0, matcher.scan(text).spans, len(text))[0] if matcher.finds(text) else text

    def finds(self, text: str) -> bool:
        """Whether `text` holds a known secret."""
        return self._current().finds(text)

    def stream(self) -> StreamRedactor:
        """Begin a text that arrives in pieces."""
        return StreamRedactor(self._current)

    def log_filter(self) -> LogFilter:
        """Return what keeps known secrets out of a handler's records."""
        return LogFilter(self)

    def _learn(self, secrets: Iterable[Secret]) -> None:
        with self._adding:
            fresh = {secret for secret in secrets if len(secret.reveal()) >= SHORTEST_KNOWN} - self._known
            if fresh:
                self._known |= fresh
                self._matcher = None

    def _current(self) -> _Matcher:
        matcher = self._matcher
        if matcher is None:
            with self._adding:
                matcher = self._matcher = _Matcher.of(self._known)
        return matcher


class StreamRedactor:
    """Redacts a text that arrives in pieces exactly as if it were whole: what may yet become a secret is held back."""

    def __init__(self, matcher: Callable[[], _Matcher]) -> None:
        self._matcher = matcher
        self._pending = ""
        self._covered = 0  # so many characters of what is pending belong to a secret whose mark is already out

    def feed(self, text: str) -> str:
        """Take the next piece and return what is certain by now."""
        pending = self._pending + text
        matcher = self._matcher()
        if not self._covered and not matcher.finds(pending):
            certain = matcher.tail(pending)
            self._pending = pending[certain:]
            return pending[:certain]
        scan = matcher.scan(pending)
        return self._release(pending, scan.spans, scan.certain)

    def flush(self) -> str:
        """End the text and return what was held back."""
        pending = self._pending
        return self._release(pending, self._matcher().scan(pending).spans, len(pending))

    def _release(self, pending: str, spans: list[tuple[int, int]], certain: int) -> str:
        released, position = _replaced(pending, self._covered, spans, certain)
        self._pending = pending[certain:]
        self._covered = position - certain
        return released


class LogFilter(logging.Filter):
    """Keeps known secrets out of log records: message, arguments, traceback and stack. Belongs on a handler."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite `record` in place; never drops it."""
        redact = self._redactor.redact
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


@frozen
class _Spelling:
    """One way in which a secret may appear; its head is enough to know it by."""

    head: str
    whole: str

    def length_at(self, text: str, start: int) -> int:
        """How many characters of it stand in `text` from `start` on: 0 if its head does not."""
        if not text.startswith(self.head, start):
            return 0
        length, limit = len(self.head), min(len(self.whole), len(text) - start)
        while length < limit and text[start + length] == self.whole[length]:
            length += 1
        return length


@frozen
class _Scan:
    """Where secrets are, as disjoint spans, and how far that is certain whatever follows the text."""

    spans: list[tuple[int, int]]
    certain: int


@frozen
class _Matcher:
    """Everything that is known, ready to be looked for."""

    spellings: tuple[_Spelling, ...]
    heads: re.Pattern[str] | None
    beginnings: frozenset[str]
    longest_beginning: int

    @classmethod
    def of(cls, secrets: Iterable[Secret]) -> _Matcher:
        spellings = tuple(sorted({each for secret in secrets for each in _spellings(secret.reveal())}, key=repr))
        heads = {spelling.head for spelling in spellings}
        beginnings = frozenset(head[:length] for head in heads for length in range(1, len(head)))
        pattern = re.compile(_alternatives(sorted(heads))) if heads else None
        return cls(spellings, pattern, beginnings, max(map(len, beginnings), default=0))

    def finds(self, text: str) -> bool:
        return self.heads is not None and self.heads.search(text) is not None

    def tail(self, text: str) -> int:
        """Where the end of `text` begins that may yet become a head; the length of `text` if there is none."""
        size = len(text)
        for start in range(max(0, size - self.longest_beginning), size):
            if text[start:] in self.beginnings:
                return start
        return size

    def scan(self, text: str) -> _Scan:
        spans: list[tuple[int, int]] = []
        certain = self.tail(text)
        found = self.heads.search(text) if self.heads else None
        while self.heads and found:
            start = found.start()
            end, may_grow = self._end(text, start)
            if may_grow:
                certain = min(certain, start)
            if spans and start < spans[-1][1]:
                start, end = spans[-1][0], max(end, spans.pop()[1])
            spans.append((start, end))
            found = self.heads.search(text, found.start() + 1)
        return _Scan(spans, certain)

    def _end(self, text: str, start: int) -> tuple[int, bool]:
        """Where the longest spelling at `start` ends, and whether more text could make any of them longer."""
        lengths = [(spelling.length_at(text, start), len(spelling.whole)) for spelling in self.spellings]
        rest = len(text) - start
        may_grow = any(length == rest and length < whole for length, whole in lengths)
        return start + max(length for length, _ in lengths), may_grow


def _replaced(text: str, covered: int, spans: list[tuple[int, int]], upto: int) -> tuple[str, int]:
    """Return `text[covered:upto]` with a mark for every span that begins in it, and where the last span ends if beyond.

    A span that overlaps the covered beginning has its mark already.
    """
    parts: list[str] = []
    position = covered
    for start, end in spans:
        if start >= upto:
            break
        if start >= position:
            parts += (text[position:start], MARK)
        position = max(position, end)
    parts.append(text[position:upto])
    return "".join(parts), max(position, upto)


def _encoded(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _base64_at(shift: int, alphabet: bytes) -> Callable[[str], str]:
    """Base64 of a value that begins `shift` bytes into a group of 3; only the characters that its neighbours leave alone."""

    def encode(value: str) -> str:
        data = bytes(shift) + _encoded(value)
        return base64.b64encode(data, alphabet).decode()[(8 * shift + 5) // 6 : 8 * len(data) // 6]

    return encode


def _url_quoted(safe: str, space: str, *, lower: bool) -> Callable[[str], str]:
    """URL encoding in one of its dialects: what stays as it is, how a space is written, the case of the digits."""

    def encode(value: str) -> str:
        quoted = urllib.parse.quote(value, safe=safe, errors="surrogatepass").replace("%20", space)
        return re.sub(r"%..", lambda escape: escape[0].lower(), quoted) if lower else quoted

    return encode


def _json_escaped(escapes: Mapping[str, str]) -> Callable[[str], str]:
    """JSON as other writers have it, who escape more than they must."""

    def encode(value: str) -> str:
        return "".join(escapes.get(character) or json.dumps(character)[1:-1] for character in value)

    return encode


_PHP: Final = {"/": r"\/"}
_GO: Final = {character: f"\\u{ord(character):04x}" for character in "<>&"}
_DOTNET: Final = {character: f"\\u{ord(character):04X}" for character in "\"'<>&+`"}

_ENCODERS: Final[tuple[Callable[[str], str], ...]] = (
    str,
    *(
        _url_quoted(safe, space, lower=lower)
        for safe in ("", "/", "!*'()")
        for space in ("%20", "+")
        for lower in (False, True)
    ),
    lambda value: json.dumps(value)[1:-1],
    lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    *map(_json_escaped, (_PHP, _GO, _DOTNET)),
    *(_base64_at(shift, alphabet) for shift in range(3) for alphabet in (b"+/", b"-_")),
)
"""Each turns a beginning of a value into a beginning of the whole's encoding, so that a head can be encoded too."""


def _spellings(value: str) -> set[_Spelling]:
    prefix = next((len(prefix) for prefix in VENDOR_PREFIXES if value.startswith(prefix)), None)
    head = value[: SHORTEST_KNOWN if prefix is None else prefix + BEYOND_PREFIX]
    return {_Spelling(encode(head), encode(value)) for encode in _ENCODERS}


def _alternatives(heads: list[str]) -> str:
    """A pattern for any of `heads` (sorted) that tries each common beginning once, not once a head."""
    if len(heads) == 1:
        return re.escape(heads[0])
    if "" in heads:
        return ""
    by_first: dict[str, list[str]] = {}
    for head in heads:
        by_first.setdefault(head[0], []).append(head[1:])
    branches = [re.escape(first) + _alternatives(rests) for first, rests in by_first.items()]
    return f"(?:{'|'.join(branches)})"


def keep_memory_private() -> None:
    """Let no other program of this user look into our memory or our environment, and no crash write them to a file.

    What we start is not affected: a new program begins as the system has it.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
