"""The output of a command: from bytes to text that can be shown and told, however much and whatever it is."""

from __future__ import annotations

import codecs
import re
from typing import Final

ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
"""Escape sequences of terminals (ECMA-48): control sequences, strings up to their end, and the short ones."""

UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
OVERWRITTEN: Final = re.compile(r"[^\n]*\r(?!\n|\Z)")
"""What a line says before a carriage return, as bars of progress do: the rest of the line takes its place."""

LONGEST_SEQUENCE: Final = 4096


class Reader:
    """From bytes in pieces to text in pieces, without escape sequences and control characters; bad UTF-8 is replaced."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, piece: bytes, *, last: bool = False) -> str:
        """The text that is complete now; all that is left where it is the `last` piece."""
        text = self._rest + self._decoder.decode(piece, last)
        self._rest = ""
        if not last and (start := UNFINISHED.search(text, max(0, len(text) - LONGEST_SEQUENCE))):
            text, self._rest = text[: start.start()], text[start.start() :]
        return without_controls(text)


def without_controls(text: str) -> str:
    """Text for a reader that is no terminal."""
    if "\x1b" in text or "\x9b" in text:
        text = ESCAPE.sub("", text)
    return CONTROLS.sub("", text)


class HeadAndTail:
    """Keeps the beginning and the end of a text, at most `limit` characters together."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = ""
        self._tail = ""
        self.total = 0

    def feed(self, text: str) -> None:
        """Add to it; what does not fit is dropped from the middle."""
        self.total += len(text)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > self._half * 2:
            self._tail = self._tail[-self._half :]

    def text(self) -> str:
        """What is kept, with a line that says how much is missing."""
        tail = self._tail[-self._half :]
        missing = self.total - len(self._head) - len(tail)
        if missing <= 0:
            return overwritten(self._head + tail)
        head_end, tail_start = self._head.rfind("\n") + 1 or len(self._head), tail.find("\n") + 1
        head, tail = self._head[:head_end], tail[tail_start:]
        missing = self.total - len(head) - len(tail)
        return overwritten(f"{head}\n[… {missing} characters left out …]\n{tail}")

    def end(self, length: int) -> str:
        """The last `length` characters."""
        return overwritten(
            (self._head + self._tail)[-length:] if self.total <= self._half * 2 else self._tail[-length:]
        )


def overwritten(text: str) -> str:
    """What a terminal would still show of lines that were written over."""
    return OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "\n") if "\r" in text else text
