"""The channel to a compiled agent, over one end of a connected pair of sockets: frames of a length and a JSON object.

Whoever is at the other end may send anything. What is odd in the least is a ChannelFault, and the run must end then.
"""

from __future__ import annotations

import asyncio
import json
import math
import struct
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from lyma_server.protocol.base import Json

LENGTH: Final = struct.Struct("!I")
LARGEST: Final = 1 << 20
"""Bytes of one message."""

DEEPEST: Final = 64
"""Objects and lists in each other."""

LONGEST_INTEGER: Final = 16
"""Digits; beyond 2^53 numbers are not the same everywhere."""


class ChannelFault(Exception):
    """The other side said what it may not; what that was is for the log."""


class Channel:
    """One end. A message may be sent while another is awaited; two that are sent at once go one after the other."""

    def __init__(self, end: socket.socket) -> None:
        """Take over `end`."""
        end.setblocking(False)
        self._end = end
        self._sending = asyncio.Lock()
        self._receiving = False

    async def receive(self) -> dict[str, Json] | None:
        """The next message; null where the other side has closed between two. Raises ChannelFault.

        What was cancelled in the middle of a message cannot go on.
        """
        if self._receiving:
            raise ChannelFault("cut off in the middle of a message")
        self._receiving = True
        head = await self._read(LENGTH.size)
        if not head:
            self._receiving = False
            return None
        (length,) = LENGTH.unpack(self._whole(head, LENGTH.size))
        if length > LARGEST:
            raise ChannelFault(f"a message of {length} bytes")
        body = self._whole(await self._read(length), length)
        self._receiving = False
        return parse_message(body)

    async def send(self, message: Mapping[str, Json]) -> None:
        """Send one. Raises ChannelFault where the other side is gone, ValueError where it is too large."""
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        if len(body) > LARGEST:
            raise ValueError("a message is too large")
        async with self._sending:
            try:
                await asyncio.get_running_loop().sock_sendall(self._end, LENGTH.pack(len(body)) + body)
            except OSError as error:
                raise ChannelFault("the other side is gone") from error

    def close(self) -> None:
        """Let go of it; any number of times."""
        self._end.close()

    async def _read(self, size: int) -> bytes:
        """So many bytes, or less where the other side has closed."""
        loop = asyncio.get_running_loop()
        found = bytearray()
        while len(found) < size:
            try:
                piece = await loop.sock_recv(self._end, size - len(found))
            except OSError as error:
                raise ChannelFault("the other side is gone") from error
            if not piece:
                break
            found += piece
        return bytes(found)

    @staticmethod
    def _whole(piece: bytes, size: int) -> bytes:
        if len(piece) < size:
            raise ChannelFault("ended in the middle of a message")
        return piece


def parse_message(body: bytes) -> dict[str, Json]:
    """The object that the bytes of one message say. Raises ChannelFault for all but plain, strict JSON of some depth."""
    try:
        message = json.loads(
            body.decode(),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole_number,
        )
        if not isinstance(message, dict):
            raise ChannelFault("no object")
        _check_depth(message)
        json.dumps(message, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    except RecursionError:
        raise ChannelFault("nested too deeply") from None
    except ValueError as error:
        raise ChannelFault(str(error)) from None
    return message


def _check_depth(message: Any) -> None:
    level = [message]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ChannelFault("nested too deeply")


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return names


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER + 1 or abs(int(digits)) >= 2**53:
        raise ValueError("an integer is too large")
    return int(digits)
