"""Addresses of providers: of the network, or a Unix socket of this machine, which nothing outside can reach."""

from __future__ import annotations

import urllib.parse
from typing import Final

SOCKET_SCHEME: Final = "unix:"
OVER_SOCKET: Final = "http://localhost/v1"
"""The base URL of the HTTP that is spoken over a socket."""


def is_address(text: str) -> bool:
    """Whether a provider can be there: http or https without a user name, or the absolute path of a socket."""
    if text.startswith(SOCKET_SCHEME):
        return (socket_path(text) or "").startswith("/")
    try:
        parts = urllib.parse.urlsplit(text)
        return (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
        )
    except ValueError:
        return False


def socket_path(address: str | None) -> str | None:
    """The path of a Unix socket (`unix:/run/llama.sock`), null for an address of the network."""
    return address.removeprefix(SOCKET_SCHEME) if address is not None and address.startswith(SOCKET_SCHEME) else None


def http_base(address: str | None) -> str | None:
    """The base URL by which HTTP is spoken there."""
    return OVER_SOCKET if socket_path(address) is not None else address
