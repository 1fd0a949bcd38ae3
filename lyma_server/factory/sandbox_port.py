"""What a run needs of the sandbox. `sandbox.Sandbox` is one; tests have another, whose child is a task of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.factory.lines import Lines
    from lyma_server.factory.sandbox import Launch
    from lyma_server.protocol.base import Json


class ChannelPort(Protocol):
    """Whole messages, as they are. Raises ChannelFault for anything odd."""

    async def receive(self) -> dict[str, Any] | None:
        """The next message, null where the child has closed its end."""

    async def send(self, message: Mapping[str, Json], /) -> None:
        """Send one."""


class EndedPort(Protocol):
    """How a child ended."""

    @property
    def status(self) -> int: ...

    @property
    def reason(self) -> str:
        """`cpu` where its processor time was used up."""

    @property
    def output(self) -> str:
        """The end of what it said on stdout and stderr."""


class InsidePort(Protocol):
    """A child that runs."""

    @property
    def channel(self) -> ChannelPort:
        """To and from it."""

    def lines(self) -> Lines:
        """Its stdin and stdout, where the launch asked for them; to be called once, right after the start."""

    async def stop(self, grace_s: float) -> EndedPort:
        """Wait so long, then kill all that is left of it, and collect it. Any number of times."""


class SandboxPort(Protocol):
    """Where agents run."""

    async def prove(self) -> None:
        """Raise SandboxUnavailable, with the remedy, unless the sandbox holds here."""

    async def start(self, launch: Launch, /) -> InsidePort:
        """Start a child. Raises SandboxUnavailable."""
