"""A thread that does nothing but read, so that no busy handler ever keeps a message waiting outside."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING, Final

from lyma_server.editor.rpc.envelope import PARSE_ERROR, Invalid, Message, open_body, open_oversized
from lyma_server.editor.rpc.framing import BODY_LIMIT, Body, Broken, Frame, FrameParser

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK: Final = 1 << 18
_UNHANDLED_LIMIT: Final = 4096
"""Messages that were read and not yet handled; a client that sends faster waits."""


class Reader:
    """Reads messages from a descriptor and delivers them, in order, from a thread of its own."""

    def __init__(self, descriptor: int, deliver: Callable[[Message], None], on_end: Callable[[], None]) -> None:
        """`deliver` and `on_end` are called in the reader's thread; call `handled` once for each message delivered."""
        self._descriptor = descriptor
        self._deliver = deliver
        self._on_end = on_end
        self._room = threading.Semaphore(_UNHANDLED_LIMIT)

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._run, name="reader", daemon=True).start()

    def handled(self) -> None:
        """Make room for one more message."""
        self._room.release()

    def _run(self) -> None:
        parser = FrameParser()
        while data := _read(self._descriptor):
            for frame in parser.feed(data):
                self._room.acquire()
                self._deliver(_open(frame))
        self._on_end()


def _open(frame: Frame) -> Message:
    if isinstance(frame, Body):
        return open_body(frame.content)
    if isinstance(frame, Broken):
        return Invalid(None, PARSE_ERROR, frame.reason)
    return open_oversized(frame, BODY_LIMIT)


def _read(descriptor: int) -> bytes:
    """The next bytes; none at the end of the stream or when it broke."""
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:  # whoever started us may have left the pipe non-blocking
            select.select([descriptor], [], [])
        except OSError:
            return b""
