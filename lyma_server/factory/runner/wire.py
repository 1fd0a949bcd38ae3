"""The runner's end of the channel: descriptor 3, frames of a length and a JSON object."""

from __future__ import annotations

import json
import os
import struct

TYPE_CHECKING = False  # to load typing would take longer than all else here
if TYPE_CHECKING:
    from typing import Any, Final

DESCRIPTOR: Final = 3
LENGTH: Final = struct.Struct("!I")
CANCELLED: Final = 3
"""The status of a run that was told to end."""


def send(message: dict[str, Any]) -> None:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    rest = memoryview(LENGTH.pack(len(body)) + body)
    while rest:
        rest = rest[os.write(DESCRIPTOR, rest) :]


def receive() -> dict[str, Any]:
    """The next message. Ends the process where there is none any more, or where it is told to end."""
    (length,) = LENGTH.unpack(_exactly(LENGTH.size))
    message: dict[str, Any] = json.loads(_exactly(length))
    if message["type"] == "cancel":
        os._exit(CANCELLED)
    return message


class Requests:
    """Asks the parent. Each question has a number, and each answer that of its question."""

    def __init__(self) -> None:
        self._last = 0
        self._answers: dict[int, dict[str, Any]] = {}

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Ask and wait for the answer."""
        return self.answer(self.begin(kind, **fields))

    def begin(self, kind: str, **fields: Any) -> int:
        """Ask; the number by which the answer can be had."""
        self._last += 1
        send({"type": kind, "id": self._last, **fields})
        return self._last

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for one answer."""
        while number not in self._answers:
            message = receive()
            self._answers[message["id"]] = message
        return self._answers.pop(number)


def _exactly(size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = os.read(DESCRIPTOR, size - len(found))
        if not piece:
            os._exit(CANCELLED)
        found += piece
    return bytes(found)
