"""The router: puts each model call to whichever key of whichever provider can answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from lyma_server.config.model import Settings
    from lyma_server.protocol.events import Attempt
    from lyma_server.protocol.messages import ModelsResult, ProviderStatus
    from lyma_server.router.chat import ChatEvent, ChatRequest
    from lyma_server.router.providers.base import Provider


class Router:
    """Built once per process. `providers` are in the order of fallback, their keys resolved."""

    def __init__(self, providers: tuple[Provider, ...], settings: Settings) -> None:
        self._providers = providers
        self._settings = settings

    def stream(self, request: ChatRequest, on_attempt: Callable[[Attempt], None]) -> AsyncGenerator[ChatEvent]:
        """One model call: deltas, then `Completed`. `on_attempt` hears of each attempt when it is decided.

        Raises AllFailed where nobody answered, and StreamInterrupted where an answer broke off after its first visible
        token; the next call of the session then tries that candidate last. To give up, cancel the task or `aclose` the
        generator: the provider's connection is closed at once.
        """
        raise NotImplementedError

    async def warm_up(self) -> None:
        """Import the SDK of the first provider, off the event loop, so that the first ask need not wait for it."""
        raise NotImplementedError

    async def models(self, provider: str | None = None) -> ModelsResult:
        """What the providers list, or one of them; one that cannot be asked is a failure in the result."""
        raise NotImplementedError

    def status(self) -> tuple[ProviderStatus, ...]:
        """How each provider and key stands."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close every connection."""
        raise NotImplementedError
