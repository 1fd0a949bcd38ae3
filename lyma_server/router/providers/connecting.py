"""Where the connections of all providers come from: one pool for the network, one for each Unix socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from lyma_server.config.addresses import socket_path
from lyma_server.router.classification import vendor
from lyma_server.router.policy import Failure
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.providers.connect import build_http_client
from lyma_server.router.providers.loading import import_in_thread

if TYPE_CHECKING:
    import httpx2

    from lyma_server.router.providers.base import Key, Provider


class Connections(Protocol):
    """What an adapter needs to know of the world below HTTP."""

    async def warm_up(self) -> None:
        """Do ahead what the first call would wait for."""

    async def client(self, provider: Provider) -> httpx2.AsyncClient:
        """The client that reaches this provider."""

    def vendor(self, provider: Provider) -> str:
        """Whose errors it speaks."""

    async def close(self) -> None:
        """Close every connection."""


class NetworkConnections:
    """One shared client for the network, since a pool for each key would cost 17 ms and a handshake each; and one for each
    Unix socket.
    """

    def __init__(self, connect_s: float) -> None:
        self._connect_s = connect_s
        self._client: httpx2.AsyncClient | None = None
        self._sockets: dict[str, httpx2.AsyncClient] = {}
        self._building = asyncio.Lock()

    async def warm_up(self) -> None:
        """Build the client: reading the certificate authorities takes a while."""
        async with self._building:
            if self._client is None:
                await import_in_thread("httpx2")
                self._client = await asyncio.to_thread(build_http_client, self._connect_s)

    async def client(self, provider: Provider) -> httpx2.AsyncClient:
        """The client of the network, or of the provider's socket."""
        path = socket_path(provider.base_url)
        if path is not None:
            if path not in self._sockets:
                self._sockets[path] = build_http_client(self._connect_s, socket_path=path)
            return self._sockets[path]
        if self._client is None:
            await self.warm_up()
        assert self._client is not None  # noqa: S101 - just built
        return self._client

    def vendor(self, provider: Provider) -> str:
        """Whose errors it speaks, by its place and its name."""
        return vendor(provider.name, provider.base_url)

    async def close(self) -> None:
        """Close every connection."""
        clients, self._client, self._sockets = [self._client, *self._sockets.values()], None, {}
        for client in clients:
            if client is not None:
                await client.aclose()


def check_key(provider: Provider, key: Key) -> None:
    """Refuse a key that no header can carry: the libraries would put it into the text of their own error."""
    if key.secret is None:
        return
    value = key.secret.reveal()
    if not value.isascii() or not value.isprintable() or value != value.strip():
        raise AttemptFailed(Failure(vendor(provider.name, provider.base_url), "http", 401, {}, "invalid api key"))
