"""HTTP clients and what can go wrong with them. Shared by both wire formats; knows neither."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

# An idle connection is worth keeping for the length of a tool call: a new one costs two round trips and a handshake.
KEEP_ALIVE_S = 60.0
ERROR_LIMIT = 1 << 20
"""Bytes of an error's body that are read. The SDKs read it whole, and a broken or a hostile server need not end it."""

PACKED_ERROR_LIMIT = 64 << 10
"""The same where it is compressed: up to a thousand times as much comes out."""

ERROR_PATIENCE_S = 5.0
"""The longest silence in an error's body, in seconds: its status and headers say the most, and they are there."""

LOOPBACK = ("all://127.0.0.1", "all://localhost", "all://[::1]")


def build_http_client(connect_s: float, *, socket_path: str | None = None) -> httpx2.AsyncClient:
    """A client that honours the environment's proxies and certificate authorities, or speaks over a Unix socket.

    The proxies are left to the client itself: it drops the environment's as soon as it is given a transport of its own
    (measured on httpx2 2.16). Loopback never goes through a proxy. Redirects are not followed: they would carry a key to
    wherever the server points. Cookies are not kept: all keys and providers share the client, and what one was told is not
    for another. Only connecting has a timeout here; the rest is watched by content.
    """
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx2

    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    timeout = httpx2.Timeout(None, connect=connect_s)
    hooks = {"response": [_bound_error]}
    if socket_path is not None:
        transport = httpx2.AsyncHTTPTransport(uds=socket_path)
        return httpx2.AsyncClient(
            transport=transport, timeout=timeout, trust_env=False, cookies=cookies, event_hooks=hooks
        )
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_S)
    direct: dict[str, httpx2.AsyncBaseTransport | None] = dict.fromkeys(LOOPBACK)
    return httpx2.AsyncClient(timeout=timeout, limits=limits, mounts=direct, cookies=cookies, event_hooks=hooks)


async def _bound_error(response: httpx2.Response) -> None:
    """Let no more of an error be read than anybody needs to tell what it is."""
    if not response.is_success:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        response.stream = _bounded(response.stream, PACKED_ERROR_LIMIT if packed else ERROR_LIMIT)


def _bounded(stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, limit: int) -> httpx2.AsyncByteStream:
    """`stream`, which ends after `limit` bytes, and also where it is cut or falls silent: the SDKs would report that instead
    of the status, and a rate limit with its Retry-After would be forgotten.
    """
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left, blocks = limit, aiter(cast("httpx2.AsyncByteStream", stream))
            while left > 0:
                try:
                    async with asyncio.timeout(ERROR_PATIENCE_S):
                        block = await anext(blocks, b"")
                except (TimeoutError, httpx2.TransportError):
                    return
                if not block:
                    return
                yield block[:left]
                left -= len(block)

        async def aclose(self) -> None:
            await cast("httpx2.AsyncByteStream", stream).aclose()

    return Bounded()


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    return chain


def name_transport_error(error: BaseException) -> str:
    """The class of an error below HTTP, by its chain of causes: `dns_error`, `tls_error`, `timeout`, `connect_error`, `cut`
    for a connection that was there and broke, or nothing for what is no error of the transport at all.
    """
    import httpx2

    chain = _causes(error)
    for kind, name in (
        (socket.gaierror, "dns_error"),
        (ssl.SSLError, "tls_error"),
        ((httpx2.TimeoutException, TimeoutError), "timeout"),
        ((httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.InvalidURL), "connect_error"),
        ((httpx2.TransportError, OSError), "cut"),
    ):
        if any(isinstance(link, kind) for link in chain):
            return name
    return ""
