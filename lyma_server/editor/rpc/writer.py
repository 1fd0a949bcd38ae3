"""Writes what a client is to read, so that one that stops reading stops nothing else.

What is taken without waiting is written at once: the way to another thread takes longer than all the rest of what happens to
a word. Everything else is left to a thread that does nothing but write.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from lyma_server.editor.rpc.direct import DirectOutput

if TYPE_CHECKING:
    from collections.abc import Callable

CONGESTED: Final = 256 * 1024
"""From this many bytes in the queue on, whoever can say less should."""
QUEUE_LIMIT: Final = 256 << 20
"""A client that left this many bytes unread is taken for dead."""
_BATCH: Final = 64 * 1024


class Writer:
    """Writes whole messages in order. Every method may be called from any thread and returns at once."""

    def __init__(self, descriptor: int, on_broken: Callable[[str], None], queue_limit: int = QUEUE_LIMIT) -> None:
        """`on_broken` is told once, in any thread, why nothing can be written any more."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._queue_limit = queue_limit
        self._direct = DirectOutput(descriptor)
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._changed = threading.Condition()
        self._closed = False

    def start(self) -> None:
        """Begin to write."""
        threading.Thread(target=self._run, name="writer", daemon=True).start()

    @property
    def congested(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return self._queued > CONGESTED

    def send(self, message: bytes) -> None:
        """Write or queue a message; after `close` it is dropped without a word."""
        with self._changed:
            if self._closed:
                return
            message = message if self._queued else self._write_at_once(message)
            if not message:
                return
            self._queue.append(message)
            self._queued += len(message)
            overflown = self._queued > self._queue_limit
            self._changed.notify_all()
        if overflown:
            self._break("the client does not read")

    def _write_at_once(self, message: bytes) -> bytes:
        """What is left of it."""
        return message[self._direct.write(message) :] if len(message) <= _BATCH else message

    def close(self, patience_s: float) -> None:
        """Take no more messages and wait up to `patience_s` seconds until those in the queue are written. Blocks."""
        deadline = time.monotonic() + patience_s
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            while self._queued and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._direct.close()

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                _write(self._descriptor, batch)
            except OSError:
                self._break("the client closed our output")
                return
            with self._changed:
                self._queued -= len(batch)
                self._changed.notify_all()

    def _next_batch(self) -> bytes:
        """Small messages together, in one write; nothing once closed and empty."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            batch: list[bytes] = []
            size = 0
            while self._queue and (not batch or size + len(self._queue[0]) <= _BATCH):
                batch.append(self._queue.popleft())
                size += len(batch[-1])
        return b"".join(batch)

    def _break(self, reason: str) -> None:
        with self._changed:
            already = self._closed
            self._closed = True
            self._direct.close()
            self._queue.clear()
            self._queued = 0
            self._changed.notify_all()
        if not already:
            self._on_broken(reason)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # whoever started us may have left the pipe non-blocking
            select.select([], [descriptor], [])
