"""What a run needs of the router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from lyma_server.protocol.events import Attempt
    from lyma_server.router.chat import ChatEvent, ChatRequest
    from lyma_server.router.prices import ModelFacts


class Model(Protocol):
    """The router is one."""

    def stream(self, request: ChatRequest, on_attempt: Callable[[Attempt], None]) -> AsyncGenerator[ChatEvent]:
        """One model call; what `on_attempt` raises ends it."""

    def prices(self, request: ChatRequest) -> dict[str, ModelFacts | None]:
        """The providers that may answer, first choice first, each with the price of its model, null where it is unknown."""
