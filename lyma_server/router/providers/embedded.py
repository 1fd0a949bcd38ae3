"""The model on board: a server of its own, started when it is first asked, on a Unix socket that only this user can reach."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from lyma_server.errors import LymaError
from lyma_server.router.policy import Failure
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.providers.connect import build_http_client
from lyma_server.router.providers.loading import import_in_thread

if TYPE_CHECKING:
    import httpx2

    from lyma_server.router.providers.base import Provider


class Launcher(Protocol):
    """Starts the server, once, and starts it anew when it has died."""

    async def socket(self) -> str:
        """The path of its socket, once it listens there. Raises LymaError with what to do where it cannot start."""

    async def stop(self) -> None:
        """End it."""


class SocketConnections:
    """Connections to the model on board; asking for one starts it."""

    def __init__(self, launcher: Launcher, connect_s: float) -> None:
        self._launcher = launcher
        self._connect_s = connect_s
        self._building = asyncio.Lock()
        self._client: httpx2.AsyncClient | None = None
        self._path = ""

    async def warm_up(self) -> None:
        """Start the server and connect to it."""
        await import_in_thread("httpx2")

    async def client(self, provider: Provider) -> httpx2.AsyncClient:
        """The client of the socket where the server is now."""
        async with self._building:
            try:
                path = await self._launcher.socket()
            except LymaError as error:
                failure = Failure(provider.name, "transport", transport="connect_error")
                raise AttemptFailed(failure, error.message) from error
            if self._client is None or path != self._path:
                await self._let_go()
                self._client = build_http_client(self._connect_s, socket_path=path)
                self._path = path
            return self._client

    def vendor(self, provider: Provider) -> str:  # noqa: ARG002 - there is one
        """It speaks as llama.cpp does."""
        return "llama.cpp"

    async def close(self) -> None:
        """Close the connections and end the server."""
        await self._let_go()
        await self._launcher.stop()

    async def _let_go(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
