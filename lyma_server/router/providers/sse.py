"""Server-sent events, from bytes, fast.

httpx2's own line iterator splits a string wherever Unicode sees a line end (U+2028, U+0085, a form feed), also inside a
JSON string, where they are plain characters. So lines are split here, as bytes, at LF and CRLF only.
"""

from __future__ import annotations

from typing import NamedTuple

EVENT_LIMIT = 16 << 20
STRAY_LIMIT = 64 << 10
LINE_COST = 64
"""What a line takes beside its bytes, so that very many empty ones come to an end as well."""


class EventTooLong(Exception):
    """An event of more than 16 MiB: no model says that much in one piece."""


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
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._name = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self.stray = b""

    def feed(self, block: bytes) -> list[ServerEvent]:
        """Take a block. Raises EventTooLong."""
        first, *others = block.split(b"\n")
        events: list[ServerEvent] = []
        if others:
            self._take(self._whole_line(first), events)
            first = others.pop()
            for line in others:
                self._take(line.removesuffix(b"\r"), events)
        self._rest.append(first)
        self._rest_size += len(first) + LINE_COST
        if self._rest_size + self._data_size > EVENT_LIMIT:
            raise EventTooLong
        return events

    def _whole_line(self, end: bytes) -> bytes:
        """The line that `end` completes. Its parts are joined once: a long line comes in very many."""
        self._rest.append(end)
        line = b"".join(self._rest)
        self._rest, self._rest_size = [], 0
        return line.removesuffix(b"\r")

    def end(self) -> list[ServerEvent]:
        """What is left when the stream ends: some servers forget the last blank line."""
        events: list[ServerEvent] = []
        self._take(self._whole_line(b""), events)
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            self._data_size += len(line) + LINE_COST
        elif not line:
            if self._data:
                events.append(ServerEvent(self._name, b"\n".join(self._data)))
                self._data, self._data_size = [], 0
            self._name = ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
        elif line[:1] != b":" and not line.startswith((b"id:", b"retry:")) and len(self.stray) < STRAY_LIMIT:
            self.stray += line[:STRAY_LIMIT] + b"\n"
