"""Writes in a thread of its own, so that a reader who stops reading never holds up the turn or a cancel."""

from __future__ import annotations

import os
import select
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.terminal.plain import plain_line
from lyma_server.terminal.view import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from lyma_server.protocol.events import Event
    from lyma_server.terminal.view import View

    Item: TypeAlias = "Event | Remark | str | threading.Event | None"

DIM, RESET = "\x1b[2m", "\x1b[0m"
CLEAR_LINE = "\r\x1b[K"


@frozen
class Remark:
    """A line beside the answer."""

    text: str


class Printer:
    """Feeds events to a view and writes what it says. `lost` is called from its thread when nobody reads any more. After
    `patience_s` without anything to write, the seconds are counted on stderr, which must then be a terminal.
    """

    def __init__(
        self,
        view: View,
        *,
        dim_notes: bool,
        lost: Callable[[], None],
        patience_s: float | None = None,
        ends: tuple[int, int] = (1, 2),
    ) -> None:
        self.broken = False
        self.problem = ""
        self._patience_s = patience_s
        self._mid_line = self._yielding = False
        self._view = view
        self._dim = dim_notes
        self._lost = lost
        self._descriptors = dict(zip(("out", "err"), ends, strict=True))
        self._queue: SimpleQueue[Item] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="printer", daemon=True)
        self._thread.start()

    def feed(self, event: Event) -> None:
        """Take an event; returns at once."""
        self._queue.put(event)

    def write(self, text: str) -> None:
        """Take text for stdout, after the events so far."""
        self._queue.put(text)

    def remark(self, text: str) -> None:
        """Take a line for stderr, after the events so far."""
        self._queue.put(Remark(plain_line(text)))

    def flushed(self) -> threading.Event:
        """An event that is set once everything so far is written."""
        done = threading.Event()
        self._queue.put(done)
        return done

    def close(self) -> None:
        """Wait until everything is written."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._yielding = isinstance(item, threading.Event)
            if isinstance(item, threading.Event):
                self._write_all(list(self._view.finish()))
                item.set()
            elif isinstance(item, str):
                self._write("out", item)
            elif isinstance(item, Remark):
                self._write_all([*self._view.finish(), Chunk("err", f"{item.text}\n")])
            else:
                self._write_all(list(self._view.feed(item)))
        self._write_all(list(self._view.finish()))

    def _next(self) -> Item:
        """What is to be written next. The count of a long wait stands on a line of its own and goes when it ends; there is
        none in the middle of the answer's line, nor after a flush, when somebody else writes.
        """
        if self._patience_s is None or self._mid_line or self._yielding:
            return self._queue.get()
        began, counting = time.monotonic(), False
        while True:
            try:
                item = self._queue.get(timeout=1 if counting else self._patience_s)
            except Empty:
                counting = True
                self._write("err", f"{CLEAR_LINE}{DIM}waiting, {time.monotonic() - began:.0f} s{RESET}")
                continue
            if counting:
                self._write("err", CLEAR_LINE)
            return item

    def _write_all(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            dim = self._dim and chunk.stream == "err"
            self._write(chunk.stream, f"{DIM}{chunk.text.rstrip()}{RESET}\n" if dim else chunk.text)

    def _write(self, stream: str, text: str) -> None:
        if self.broken and stream == "out":
            return
        if stream == "out":
            self._mid_line = not text.endswith("\n")
        try:
            write_fully(self._descriptors[stream], text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            if stream == "out" and not self.broken:
                self.broken = True
                self.problem = "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
                self._lost()


def write_fully(descriptor: int, data: bytes) -> None:
    """Write all of it, also where another program has made the terminal non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
