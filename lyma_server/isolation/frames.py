"""Messages between our own processes: JSON with its length before it, and descriptors that go along. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any, Final

LENGTH: Final = struct.Struct("!I")
LARGEST: Final = 64 << 20
MOST_DESCRIPTORS: Final = 4


def send(channel: socket.socket, message: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message; blocks while the other side does not read. Raises OSError where it is gone."""
    body = json.dumps(message).encode()
    frame = LENGTH.pack(len(body)) + body
    sent = socket.send_fds(channel, [frame], list(descriptors)) if descriptors else 0
    if rest := memoryview(frame)[sent:]:  # to send nothing would fail where the other side has read all and left
        channel.sendall(rest)


def receive(channel: socket.socket) -> tuple[Any, list[int]]:
    """The next message and its descriptors, which are not inherited. Raises EOFError where the other side is gone."""
    head, descriptors, _, _ = socket.recv_fds(channel, LENGTH.size, MOST_DESCRIPTORS)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    head += _exactly(channel, LENGTH.size - len(head)) if head else b""
    if not head:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    if length > LARGEST:
        raise EOFError
    return json.loads(_exactly(channel, length)), descriptors


class Splitter:
    """Cuts what comes in pieces into messages, for a reader that must not block."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[Any]:
        """The messages that are whole now."""
        self._rest += piece
        messages = []
        while len(self._rest) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                break
            messages.append(json.loads(bytes(self._rest[LENGTH.size : end])))
            del self._rest[:end]
        return messages


def _exactly(channel: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = channel.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
