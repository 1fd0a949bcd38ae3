"""Writes to a pipe or a socket as much as is taken without waiting, whatever others do with it."""

from __future__ import annotations

import os
import socket
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DirectOutput:
    """A second way to what `descriptor` leads to, which never waits and leaves the first as it is."""

    def __init__(self, descriptor: int) -> None:
        self._send: Callable[[bytes], int] | None = None
        self._close: Callable[[], None] | None = None
        try:
            self._open(descriptor)
        except OSError:  # it is broken, or there is no such way to it on this system
            self.close()

    def write(self, message: bytes) -> int:
        """How many of its bytes were taken. What is broken takes none: whoever waits for it will learn why."""
        if self._send is None:
            return 0
        try:
            return self._send(message)
        except OSError:
            return 0

    def close(self) -> None:
        """Take nothing more."""
        close, self._send, self._close = self._close, None, None
        if close is not None:
            close()

    def _open(self, descriptor: int) -> None:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISSOCK(kind):
            channel = socket.socket(fileno=os.dup(descriptor))
            self._send, self._close = lambda message: channel.send(message, socket.MSG_DONTWAIT), channel.close
        elif stat.S_ISFIFO(kind):  # not the flag of the descriptor: that belongs to all who hold it
            own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._send, self._close = lambda message: os.write(own, message), lambda: os.close(own)
