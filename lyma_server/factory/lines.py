"""Speaks with a program by lines on its stdin and stdout, each one JSON object. What is odd is a ChannelFault."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Final

from lyma_server.factory.channel import ChannelFault, parse_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lyma_server.protocol.base import Json

MOST: Final = 8 << 20
"""Bytes that a program may say in all."""


class Lines:
    """`listen` begins to hand over what the program says, in pieces, and gives the descriptor of its stdin."""

    def __init__(self, listen: Callable[[Callable[[bytes], None]], int | None]) -> None:
        self._heard = bytearray()
        self._whole: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._too_much = False
        self._said = 0
        self._stdin = listen(self._hear)
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)

    async def receive(self) -> dict[str, Json] | None:
        """The next object; null where the program will say no more. Raises ChannelFault."""
        line = await self._whole.get()
        if self._too_much:
            raise ChannelFault("too much")
        return None if line is None else parse_message(line)

    async def send(self, message: Mapping[str, Json]) -> None:
        """Send one. Raises ChannelFault where the program does not take it any more."""
        if self._stdin is None:
            raise ChannelFault("nothing, for it has no stdin")
        rest = memoryview(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        while rest:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                await _writable(self._stdin)
            except OSError as error:
                raise ChannelFault("the end of its stdin") from error

    def _hear(self, piece: bytes) -> None:
        self._said += len(piece)
        if self._said > MOST:
            self._too_much = True
            self._heard.clear()
        if not piece or self._too_much:
            self._whole.put_nowait(None)
            return
        *lines, rest = (self._heard + piece).split(b"\n")
        self._heard = rest
        for line in lines:
            self._whole.put_nowait(bytes(line))


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)
