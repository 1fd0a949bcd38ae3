"""What the two wire formats do alike: one SDK client a key, one exchange a call."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lyma_server.router.chat import Origin
from lyma_server.router.providers.connecting import check_key
from lyma_server.router.providers.encoding import encodable
from lyma_server.router.providers.exchange import Exchange
from lyma_server.router.providers.listing import read_listing
from lyma_server.router.providers.loading import import_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2

    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import ChatEvent
    from lyma_server.router.providers.base import Call, Key, ListedModel, Provider
    from lyma_server.router.providers.connecting import Connections
    from lyma_server.router.providers.exchange import Assembler
    from lyma_server.router.providers.sse import ServerEvent
    from lyma_server.router.watchdog import Watchdog


class Wire(Protocol):
    """A wire format and its SDK. Only `modules` may be looked at before these have been imported."""

    modules: tuple[str, ...]
    chat_path: str
    models_path: str

    def build_client(self, provider: Provider, key: Key, http: httpx2.AsyncClient) -> Any:
        """The SDK's asynchronous client for this key, which never retries and takes nothing from the environment."""

    def keyless_headers(self) -> dict[str, Any]:
        """Headers that keep the SDK from sending a key where there is none."""

    def status_errors(self) -> type[Exception]:
        """What the SDK raises for an error status."""

    def build_body(self, call: Call) -> dict[str, Json]:
        """The body of a streamed call."""

    def assembler(self, origin: Origin) -> Assembler:
        """What puts the answer together."""

    def is_last(self, event: ServerEvent) -> bool:
        """Whether nothing comes after this event."""


class SdkAdapter:
    """A wire format, spoken through its official SDK on the connections that are handed in."""

    def __init__(self, wire: Wire, connections: Connections) -> None:
        self._wire = wire
        self._connections = connections
        self._clients: dict[tuple[str, str, str], tuple[httpx2.AsyncClient, Any]] = {}
        self._imported = False

    async def warm_up(self) -> None:
        """Import the SDK and build the connections, off the event loop."""
        if not self._imported:
            await import_in_thread(*self._wire.modules)
            self._imported = True
        await self._connections.warm_up()

    async def stream(self, call: Call, watchdog: Watchdog) -> AsyncGenerator[ChatEvent]:
        """Make one attempt. Raises AttemptFailed."""
        client = await self._client(call.provider, call.key)
        exchange = self._exchange(call.provider, Origin(call.provider.name, call.model), watchdog)
        send = partial(
            client.post,
            self._wire.chat_path,
            body=encodable(self._wire.build_body(call)),
            cast_to=_raw_response(),
            options=self._options(call.key),
            stream=True,
        )
        response = await exchange.open(send, self._wire.status_errors())
        try:
            call.heard(exchange.headers)
            async with aclosing(exchange.read(response)) as events:
                async for event in events:
                    yield event
        finally:
            watchdog.stop()
            await response.aclose()

    async def models(self, provider: Provider, key: Key, watchdog: Watchdog) -> tuple[ListedModel, ...]:
        """What the provider lists. Raises AttemptFailed."""
        client = await self._client(provider, key)
        exchange = self._exchange(provider, Origin(provider.name, ""), watchdog)
        send = partial(client.get, self._wire.models_path, cast_to=_raw_response(), options=self._options(key))
        try:
            return await read_listing(exchange, send, self._wire.status_errors())
        finally:
            watchdog.stop()

    async def close(self) -> None:
        """Close every connection."""
        self._clients.clear()
        await self._connections.close()

    def _exchange(self, provider: Provider, origin: Origin, watchdog: Watchdog) -> Exchange:
        vendor = self._connections.vendor(provider)
        return Exchange(vendor, self._wire.assembler(origin), watchdog, self._wire.is_last)

    def _options(self, key: Key) -> dict[str, Any]:
        return {"headers": self._wire.keyless_headers()} if key.secret is None else {}

    async def _client(self, provider: Provider, key: Key) -> Any:
        """Built once for each key: on shared connections that costs microseconds."""
        check_key(provider, key)
        if not self._imported:
            await self.warm_up()
        http = await self._connections.client(provider)
        name = (provider.name, provider.base_url or "", key.fingerprint)
        known = self._clients.get(name)
        if known is None or known[0] is not http:
            known = self._clients[name] = http, self._wire.build_client(provider, key, http)
        return known[1]


def _raw_response() -> type[httpx2.Response]:
    import httpx2

    return httpx2.Response
