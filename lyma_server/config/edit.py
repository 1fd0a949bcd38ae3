"""Changes to config.toml that keep its comments and its order, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.config.paths import Home
    from lyma_server.secret import Secret


def set_value(home: Home, key: str, text: str) -> None:
    """Set the setting with the dotted name `key` to what `text` means, written as in the environment."""
    raise NotImplementedError(home, key, text)


def add_key(home: Home, provider: str, key: Secret, account: str | None = None) -> None:
    """Add a key (or a reference to one) after those that the provider has."""
    raise NotImplementedError(home, provider, key, account)


def remove_key(home: Home, provider: str, number: int) -> None:
    """Remove the key with this number, counted from 1 in the order of the file."""
    raise NotImplementedError(home, provider, number)
