"""The life of one connection: threads that read, write and watch, and one event loop between them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING, Final

from lyma_server.editor.rpc.lifetime import Lifetime, end_helpers
from lyma_server.editor.rpc.reader import Reader
from lyma_server.editor.rpc.writer import Writer

if TYPE_CHECKING:
    from lyma_server.editor.rpc.envelope import Message
    from lyma_server.editor.rpc.stdio import Stdio
    from lyma_server.editor.server import LymaServer

logger = logging.getLogger(__name__)

_CLOSING_S: Final = 0.8
_LAST_WORDS_S: Final = 0.2


class Connection:
    """Joins a server to two descriptors."""

    def __init__(self, server: LymaServer, stdio: Stdio) -> None:
        self._server = server
        self._protocol = server.protocol
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.lifetime = Lifetime(self._on_end)
        self._writer = Writer(stdio.writer, self.lifetime.end)
        self._reader = Reader(stdio.reader, self._deliver, lambda: self.lifetime.end("the client closed our input"))
        self._stdio = stdio

    async def serve(self) -> int:
        """Serve until the client leaves or is gone and return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self.lifetime.end, f"signal {number.name}")
        self._protocol.send_bytes = self._writer.send
        self._server.connect(self.lifetime, self._writer)
        self._writer.start()
        self._reader.start()
        self.lifetime.watch_parent(self._stdio.parent)
        self.lifetime.watch_output(self._stdio.writer)
        await self._ended.wait()
        await self._close()
        return self.lifetime.exit_code

    async def _close(self) -> None:
        self._protocol.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self._server.close()
        end_helpers()  # a thread that still waits for one would keep the process
        await asyncio.to_thread(self._writer.close, _LAST_WORDS_S)

    def _on_end(self, reason: str) -> None:
        """In any thread."""
        logger.info("ending: %s", reason)
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._ended.set)

    def _deliver(self, message: Message) -> None:
        """In the reader's thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._receive, message)

    def _receive(self, message: Message) -> None:
        self._reader.handled()
        if not self._ended.is_set():
            self._protocol.receive(message)
