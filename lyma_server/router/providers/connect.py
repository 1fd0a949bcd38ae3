"""HTTP clients and what can go wrong with them. Shared by both wire formats; knows neither."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

# An idle connection is worth keeping for the length of a tool call: a new one costs two round trips and a handshake.
KEEP_ALIVE_S = 60.0
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
    if socket_path is not None:
        transport = httpx2.AsyncHTTPTransport(uds=socket_path)
        return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, cookies=cookies)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_S)
    direct: dict[str, httpx2.AsyncBaseTransport | None] = dict.fromkeys(LOOPBACK)
    return httpx2.AsyncClient(timeout=timeout, limits=limits, mounts=direct, cookies=cookies)


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
