"""What the providers list: for `lyma models`, for `model = "auto"`, and to see whether a key works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.config.presets import PRESETS
from lyma_server.protocol.messages import ModelsFailure
from lyma_server.router.policy import Failure, decide
from lyma_server.router.providers.base import AUTO, AttemptFailed
from lyma_server.router.report import ADVICE, what_it_did
from lyma_server.router.spending import describe
from lyma_server.router.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lyma_server.protocol.messages import ModelInfo
    from lyma_server.router.fleet import Station
    from lyma_server.router.policy import Decision
    from lyma_server.router.providers.base import Adapter, Key, ListedModel, Provider

PATIENCE_S = 20.0
NEAR_PATIENCE_S = 3.0
"""How long names that are like a wrong one are worth waiting for, in seconds."""


@frozen
class Probe:
    """What came of asking a provider for its models with one key (masked). `class_` "ok" means that the key works; else
    `words` follow the provider's name and `advice` says what to do. `where` is its base URL. `model` is the one that would
    be asked; `model_known` is null where the list says nothing of it; `near` are listed names that are like it; `woken`
    says that the key rested, and does so no longer.
    """

    provider: str
    key: str | None
    class_: str
    words: str
    where: str | None = None
    advice: str = ""
    model: str = ""
    model_known: bool | None = None
    near: tuple[str, ...] = ()
    woken: bool = False


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
        adapter = self._adapter_of(provider)
        await adapter.warm_up()  # importing an SDK is no fault of the provider's
        deadline = asyncio.get_running_loop().time() + patience_s
        watchdog = Watchdog(Patience(patience_s, patience_s, patience_s, deadline))
        return await adapter.models(provider, key, watchdog)

    async def probe(self, provider: Provider, key: Key, now: float, patience_s: float = PATIENCE_S) -> Probe:
        """Ask with this key and say what came of it. `now` is wall time."""
        try:
            listed = [model.id for model in await self.list_models(provider, key, patience_s)]
        except AttemptFailed as failed:
            class_ = decide(failed.failure, now).class_
            words = failed.public or what_it_did(class_, provider.base_url, provider.model)
            advice = advice_for(class_, provider)
            return Probe(provider.name, key.masked, class_, words, provider.base_url, advice, provider.model)
        model = next(iter(listed), AUTO) if provider.model == AUTO else provider.model
        known = model in listed if listed else None
        near = () if known is not False else near_names(model, listed)
        return Probe(provider.name, key.masked, "ok", "answers", provider.base_url, "", model, known, near)

    async def near(self, provider: Provider, model: str) -> tuple[str, ...]:
        """Names that a provider lists and that are like `model`; none where it cannot be asked or lists `model` itself."""
        try:
            listed = [one.id for one in await self.list_models(provider, provider.keys[0], NEAR_PATIENCE_S)]
        except AttemptFailed:
            return ()
        return () if model in listed else near_names(model, listed)

    async def of_provider(self, provider: Provider, now: float) -> tuple[tuple[ModelInfo, ...], ModelsFailure | None]:
        """The models of a provider, by the first of its keys that works; or why there are none. `now` is wall time."""
        decision: Decision | None = None
        public = ""
        for key in provider.keys:
            try:
                listed = await self.list_models(provider, key)
            except AttemptFailed as failed:
                decision, public = decide(failed.failure, now), failed.public
                if decision.request not in {"rotate_key", "rotate_key_once_then_next_provider"}:
                    break
            else:
                return tuple(describe(provider, model) for model in listed), None
        class_ = "no_key" if decision is None else decision.class_
        words = "has no key" if decision is None else what_it_did(class_, provider.base_url, provider.model)
        advice = advice_for(class_, provider)
        sentence = public.rstrip(".") or f"{provider.name} {words}{f' ({advice})' if advice else ''}"
        return (), ModelsFailure(provider=provider.name, message=f"{sentence}.")


def near_names(model: str, listed: Sequence[str]) -> tuple[str, ...]:
    """At most three that are like `model`, or the first where none is."""
    from difflib import get_close_matches

    return tuple(get_close_matches(model, listed, 3, 0.4) or listed[:3])


def advice_for(class_: str, provider: Provider) -> str:
    """What to do about it. A key of a vendor with two regions may belong to the other one, which says just the same."""
    advice = ADVICE.get(class_, "")
    preset = PRESETS.get(provider.name)
    if class_ != "auth_invalid" or preset is None or preset.china_base_url is None:
        return advice
    other = preset.base_url if provider.base_url == preset.china_base_url else preset.china_base_url
    return f"{advice}: keys for {other} do not work at {provider.base_url}"
