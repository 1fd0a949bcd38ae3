"""Server-sent events, from bytes, fast.

httpx2's own line iterator splits a string wherever Unicode sees a line end (U+2028, U+0085, a form feed), also inside a
JSON string, where they are plain characters. So lines are split here, as bytes, at LF and CRLF only.
"""

from __future__ import annotations

from typing import NamedTuple

LINE_LIMIT = 16 << 20
STRAY_LIMIT = 64 << 10


class LineTooLong(Exception):
    """A line of more than 16 MiB: no model says that much in one piece."""


class ServerEvent(NamedTuple):
    """One event: its name (empty where the server gave none) and its data, the lines joined by LF. A tuple: there is one
    for each token, and an attrs class takes twice as long to make.
    """

    name: str
    data: bytes


class EventParser:
    """Feed it blocks of bytes as they come and take the events that they complete.

    `stray` keeps the beginning of what was no event at all, up to 64 KiB: a page or a JSON body that was sent instead.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self.stray = b""

    def feed(self, block: bytes) -> list[ServerEvent]:
        """Take a block. Raises LineTooLong."""
        lines = (self._rest + block).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_LIMIT:
            raise LineTooLong
        events: list[ServerEvent] = []
        for line in lines:
            self._take(line.removesuffix(b"\r"), events)
        return events

    def end(self) -> list[ServerEvent]:
        """What is left when the stream ends: some servers forget the last blank line."""
        events: list[ServerEvent] = []
        if self._rest:
            self._take(self._rest.removesuffix(b"\r"), events)
            self._rest = b""
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            if self._data:
                events.append(ServerEvent(self._name, b"\n".join(self._data)))
                self._data = []
            self._name = ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
        elif line[:1] != b":" and not line.startswith((b"id:", b"retry:")) and len(self.stray) < STRAY_LIMIT:
            self.stray += line[:STRAY_LIMIT] + b"\n"
