"""What a run needs of the sandbox; tests have one whose child is a task of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.factory.bundle import Bundle
    from lyma_server.protocol.base import Json


class ChannelPort(Protocol):
    """Whole messages, as they are. Raises ChannelFault for anything odd."""

    async def receive(self) -> dict[str, Any] | None:
        """The next message, null where the child has closed its end."""

    async def send(self, message: dict[str, Json]) -> None:
        """Send one."""


class InsidePort(Protocol):
    """A child that runs."""

    @property
    def channel(self) -> ChannelPort:
        """To and from it."""

    async def stop(self, grace_s: float) -> None:
        """Wait so long, then kill all that is left of it, and collect it. Idempotent."""


class SandboxPort(Protocol):
    """Where agents run."""

    async def prove(self) -> None:
        """Raise SandboxUnavailable, with the remedy, unless the sandbox holds here."""

    async def start(self, bundle: Bundle, staged: Path) -> InsidePort:
        """Start a child with the bundle's bytes, and what lies in `staged` as its `/in`."""
