"""What the providers list: for `lyma models`, for `model = "auto"`, and to see whether a key works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lyma_server.protocol.messages import ModelInfo, ModelsFailure
from lyma_server.router.policy import CLASSES, Failure, decide
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.router.fleet import Station
    from lyma_server.router.policy import Decision
    from lyma_server.router.providers.base import Adapter, Key, ListedModel, Provider

AUTO = "auto"
PATIENCE_S = 20.0


class Listings:
    """Asks each provider once; what "auto" means is remembered until it turns out to be wrong."""

    def __init__(self, adapter_of: Callable[[Provider], Adapter]) -> None:
        self._adapter_of = adapter_of
        self._auto: dict[str, str] = {}

    async def resolve(self, station: Station, key: Key, watchdog: Watchdog) -> str:
        """The model that a station is to be asked for; "auto" is the first that its server lists. Raises AttemptFailed."""
        if station.model != AUTO:
            return station.model
        name = station.provider.name
        if name not in self._auto:
            listed = await self._adapter_of(station.provider).models(station.provider, key, watchdog)
            if not listed:
                raise AttemptFailed(Failure(name, "http", 404, body="no models loaded"))
            self._auto[name] = listed[0].id
        return self._auto[name]

    def forget(self, provider: str) -> None:
        """What "auto" meant is no longer there."""
        self._auto.pop(provider, None)

    async def list_models(
        self, provider: Provider, key: Key, patience_s: float = PATIENCE_S
    ) -> tuple[ListedModel, ...]:
        """What a provider lists for this key. Raises AttemptFailed."""
        deadline = asyncio.get_running_loop().time() + patience_s
        watchdog = Watchdog(Patience(patience_s, patience_s, patience_s, deadline))
        return await self._adapter_of(provider).models(provider, key, watchdog)

    async def of_provider(self, provider: Provider, now: float) -> tuple[tuple[ModelInfo, ...], ModelsFailure | None]:
        """The models of a provider, by the first of its keys that works; or why there are none. `now` is wall time."""
        decision: Decision | None = None
        for key in provider.keys:
            try:
                listed = await self.list_models(provider, key)
            except AttemptFailed as failed:
                decision = decide(failed.failure, now)
                if decision.request not in {"rotate_key", "rotate_key_once_then_next_provider"}:
                    break
            else:
                return tuple(_information(provider, model) for model in listed), None
        words = "has no key" if decision is None else CLASSES[decision.class_].words
        return (), ModelsFailure(provider=provider.name, message=f"{provider.name} {words}.")


def _information(provider: Provider, model: ListedModel) -> ModelInfo:
    return ModelInfo(provider=provider.name, id=model.id, context_tokens=model.context_tokens)
