"""Where one message ends and the next begins.

A message is a block of header lines, an empty line and a body of Content-Length bytes. Clients differ in the case and the
spacing of headers, and a wrong length leaves rubbish between two messages: this parser reads on to the next header that
makes sense instead of losing what follows.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from attrs import frozen

MEBIBYTE: Final = 1 << 20
BODY_LIMIT: Final = 64 * MEBIBYTE
BELIEVABLE_LENGTH: Final = 1024 * MEBIBYTE
"""A body said to be longer is not skipped: the number is taken for a mistake."""

_LINE_LIMIT: Final = 64 * 1024
_EDGE: Final = 4096
_LENGTH: Final = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*$", re.IGNORECASE)
_WRONG_LENGTH: Final = re.compile(rb"content-length[ \t]*:", re.IGNORECASE)


@frozen(eq=False, repr=False)
class Body:
    """A whole body."""

    content: bytes


@frozen(eq=False, repr=False)
class Oversized:
    """A body over the limit, thrown away but for its two ends (4 KiB each)."""

    length: int
    head: bytes
    tail: bytes


@frozen(eq=False, repr=False)
class Broken:
    """Bytes that belong to no message."""

    reason: str


Frame: TypeAlias = Body | Oversized | Broken


def frame(body: bytes) -> bytes:
    """`body` with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameParser:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self, body_limit: int = BODY_LIMIT) -> None:
        """Bodies longer than `body_limit` bytes are skipped."""
        self._body_limit = body_limit
        self._buffer = bytearray()
        self._searched = 0
        self._length: int | None = None
        self._in_body = False
        self._header_seen = False
        self._rubbish = False
        self._skipping: _Skipped | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Take more bytes and give the frames that they complete."""
        self._buffer += data
        frames: list[Frame] = []
        while self._step(frames):
            pass
        return frames

    def _step(self, frames: list[Frame]) -> bool:
        """Do one thing; false when more bytes are needed."""
        if self._skipping is not None:
            return self._skip(self._skipping, frames)
        if self._in_body:
            return self._take_body(frames)
        return self._take_line(frames)

    def _take_line(self, frames: list[Frame]) -> bool:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            self._drop_endless_line(frames)
            return False
        line = bytes(self._buffer[:end]).strip()
        del self._buffer[: end + 1]
        self._searched = 0
        if line:
            self._take_header(line, frames)
        elif self._header_seen:
            self._end_headers(frames)
        return True

    def _drop_endless_line(self, frames: list[Frame]) -> None:
        if len(self._buffer) > _LINE_LIMIT:
            self._complain(frames, "No header was found in the last 64 KiB.")
            del self._buffer[:-_EDGE]
            self._searched = len(self._buffer)

    def _take_header(self, line: bytes, frames: list[Frame]) -> None:
        self._header_seen = True
        match = _LENGTH.search(line)
        if match is None:
            if _WRONG_LENGTH.search(line):
                self._complain(frames, "A Content-Length is not a number of bytes.")
            return
        if match.start() > 0:
            self._complain(frames, "Bytes before a header belong to no message.")
        self._length = int(match[1])

    def _end_headers(self, frames: list[Frame]) -> None:
        length, self._length, self._header_seen = self._length, None, False
        if length is None:
            self._complain(frames, "A message came without a Content-Length.")
            return
        if length > BELIEVABLE_LENGTH:
            self._complain(frames, f"A Content-Length of {length} bytes cannot be meant.")
            return
        self._rubbish = False
        if length > self._body_limit:
            self._skipping = _Skipped(length)
        else:
            self._in_body, self._length = True, length

    def _take_body(self, frames: list[Frame]) -> bool:
        length = self._length or 0
        if len(self._buffer) < length:
            return False
        frames.append(Body(bytes(self._buffer[:length])))
        del self._buffer[:length]
        self._in_body, self._length = False, None
        return True

    def _skip(self, skipped: _Skipped, frames: list[Frame]) -> bool:
        taken = skipped.take(self._buffer)
        del self._buffer[:taken]
        if skipped.left:
            return False
        frames.append(Oversized(skipped.length, bytes(skipped.head), bytes(skipped.tail)))
        self._skipping = None
        return True

    def _complain(self, frames: list[Frame], reason: str) -> None:
        """Once for each stretch of rubbish."""
        if not self._rubbish:
            frames.append(Broken(reason))
        self._rubbish = True


class _Skipped:
    """The two ends of a body that is thrown away."""

    def __init__(self, length: int) -> None:
        self.length = self.left = length
        self.head = bytearray()
        self.tail = bytearray()

    def take(self, buffer: bytearray) -> int:
        """Take what belongs to this body and give its number of bytes."""
        taken = min(self.left, len(buffer))
        piece = buffer[:taken]
        self.head += piece[: _EDGE - len(self.head)]
        self.tail = (self.tail + piece[-_EDGE:])[-_EDGE:]
        self.left -= taken
        return taken
