"""The router: puts each model call to whichever key of whichever provider can answer it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from attrs import evolve

from lyma_server.errors import AllFailed, ConfigError
from lyma_server.protocol.messages import KeyStatus, ModelsResult, ProviderStatus
from lyma_server.router.call import CallLoop, Means
from lyma_server.router.chat import Remark
from lyma_server.router.database import Database
from lyma_server.router.fleet import Fleet
from lyma_server.router.ledger import Ledger, Totals
from lyma_server.router.listings import Listings
from lyma_server.router.plan import plan
from lyma_server.router.providers.adapter import SdkAdapter
from lyma_server.router.providers.anthropic import AnthropicWire
from lyma_server.router.providers.base import AUTO
from lyma_server.router.providers.connecting import NetworkConnections
from lyma_server.router.providers.embedded import SocketConnections
from lyma_server.router.providers.openai import OpenAIWire
from lyma_server.router.spending import Spending, price_at
from lyma_server.router.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from lyma_server.config.model import Settings
    from lyma_server.protocol.events import Attempt
    from lyma_server.router.chat import ChatEvent, ChatRequest
    from lyma_server.router.fleet import Station
    from lyma_server.router.listings import Probe
    from lyma_server.router.prices import ModelFacts
    from lyma_server.router.providers.base import Adapter, Key, Provider
    from lyma_server.router.providers.connecting import Connections
    from lyma_server.router.providers.embedded import Launcher

HAVE_A_PLACE = {"openai", "anthropic"}


class Router:
    """Built once per process. `providers` are in the order of fallback, their keys resolved."""

    def __init__(
        self,
        providers: tuple[Provider, ...],
        settings: Settings,
        state: State | None = None,
        *,
        launcher: Launcher | None = None,
    ) -> None:
        """`state` null keeps what is learned in memory only; `launcher` starts the model on board.

        Raises ConfigError for a provider that is nowhere: its key would go to somebody else.
        """
        for provider in providers:
            if provider.base_url is None and provider.name not in HAVE_A_PLACE and provider.api != "embedded":
                raise ConfigError(
                    f"The provider {provider.name} has no base_url: say where it is.",
                    key=f"providers.{provider.name}.base_url",
                )
        self._providers = providers
        self._settings = settings
        self._state = state or State(Database(None))
        self._fleet = Fleet(self._state, settings.router.rotation)
        self._launcher = launcher
        self._adapters: dict[str, Adapter] = {}
        self._network: Connections | None = None
        self._listings = Listings(self._adapter)
        self._spending = Spending(Ledger(self._state.database), settings.router.daily_cap_micros)
        self._means = Means(
            self._fleet,
            lambda station: self._adapter(station.provider),
            self._listings,
            settings.router,
            self._spending,
        )

    async def stream(self, request: ChatRequest, on_attempt: Callable[[Attempt], None]) -> AsyncGenerator[ChatEvent]:
        """One model call: deltas, then `Completed`. `on_attempt` hears of each attempt when it is decided.

        Raises AllFailed where nobody answered, and StreamInterrupted where an answer broke off after its first visible
        token; the next call of the session then tries that candidate last. Raises UsageError where the request pins what
        is not there, ProviderError where the day's cap leaves nobody to ask. To give up, cancel the task or `aclose` the generator: the provider's connection is closed at once.
        """
        planned = self._stations(plan(self._providers, self._settings.folders, request))
        stations = self._spending.affordable(planned)
        for notice in self.take_notices():
            yield Remark(notice)
        call = CallLoop(request, stations, self._means, on_attempt)
        try:
            async with aclosing(call.run()) as events:
                async for event in events:
                    yield event
        except AllFailed as error:
            error.message += await self._near_models(stations, error)
            raise

    def prices(self, request: ChatRequest) -> dict[str, ModelFacts | None]:
        """Who may be asked, by name and in order, each with the price of its model; null where that is not known.

        Raises UsageError where the request pins what is not there.
        """
        planned = plan(self._providers, self._settings.folders, request)
        return {provider.name: price_at(provider, model) for provider, model in planned}

    async def warm_up(self) -> None:
        """Do ahead, off the event loop, what the first ask would wait for: open the state and import an SDK."""
        await asyncio.to_thread(self._state.database.version)
        first = next((provider for provider in self._providers if provider.keys), None)
        if first is not None:
            await self._adapter(first).warm_up()

    async def models(self, provider: str | None = None) -> ModelsResult:
        """What the providers list, or one of them; one that cannot be asked is a failure in the result."""
        asked = [one for one in self._providers if provider in {None, one.name}]
        answers = await asyncio.gather(*(self._listings.of_provider(one, time.time()) for one in asked))
        return ModelsResult(
            models=tuple(model for models, _ in answers for model in models),
            failures=tuple(failure for _, failure in answers if failure is not None),
        )

    async def probe(self, provider: str | None = None, patience_s: float = 20.0) -> tuple[Probe, ...]:
        """Ask each provider, or one, for its models with each of its keys: cheap, and tells what is wrong with which. A key
        that works rests no longer.
        """
        asked = [(one, key) for one in self._providers if provider in {None, one.name} for key in one.keys]
        probes = (self._listings.probe(one, key, time.time(), patience_s) for one, key in asked)
        found = await asyncio.gather(*probes)
        return tuple(self._woken(probe, *who) for probe, who in zip(found, asked, strict=True))

    def _woken(self, probe: Probe, provider: Provider, key: Key) -> Probe:
        if probe.class_ != "ok":
            return probe
        return evolve(probe, woken=self._fleet.works(self._fleet.station(provider, provider.model), key.fingerprint))

    def status(self) -> tuple[ProviderStatus, ...]:
        """How each provider and each of its keys stands."""
        stations = self._stations(tuple((provider, provider.model) for provider in self._providers))
        today = self._spending.today()
        return tuple(self._status(station, today.get(station.provider.name, Totals())) for station in stations)

    def take_notices(self) -> list[str]:
        """What the person should know of the state on disk, each sentence once."""
        return self._state.database.take_notices()

    async def close(self) -> None:
        """Close every connection, end the model on board, and write down what was learned."""
        adapters, self._adapters = list(self._adapters.values()), {}
        await asyncio.gather(*(adapter.close() for adapter in adapters))
        await asyncio.to_thread(self._state.database.close)

    async def _near_models(self, stations: tuple[Station, ...], error: AllFailed) -> str:
        """A sentence for each provider that does not have the model it was asked for: which names it lists instead."""
        rows = cast("list[dict[str, str]]", error.data["attempts"])
        missing = {row["provider"] for row in rows if row["class"] == "model_unavailable"}
        told = ""
        for station in stations:
            if station.provider.name in missing and station.model != AUTO:
                near = await self._listings.near(station.provider, station.model)
                told += f" {station.provider.name} lists {', '.join(near)}." if near else ""
        return told

    def _stations(self, planned: tuple[tuple[Provider, str], ...]) -> tuple[Station, ...]:
        return tuple(self._fleet.station(provider, model) for provider, model in planned)

    def _status(self, station: Station, today: Totals) -> ProviderStatus:
        return ProviderStatus(
            name=station.provider.name,
            api=station.provider.api,
            model=station.model,
            breaker=self._fleet.breaker_state(station),
            base_url=station.provider.base_url,
            keys=tuple(self._key_status(station, fingerprint) for fingerprint in station.keys),
            tokens_today=today.input_tokens + today.output_tokens,
            cost_micros_today=today.shown_cost_micros,
        )

    def _key_status(self, station: Station, fingerprint: str) -> KeyStatus:
        standing, wait = self._fleet.standing(station, fingerprint), self._fleet.held_for(station, fingerprint)
        key = station.keys[fingerprint]
        return KeyStatus(
            key=key.masked or "(none needed)",
            state="ready" if not wait else "cooling" if standing.reason == "rate_limit" else "disabled",
            account=self._fleet.account_of(station, fingerprint),
            until=datetime.fromtimestamp(time.time() + wait, UTC).isoformat(timespec="seconds") if wait else None,
            reason=standing.reason or None,
        )

    def _adapter(self, provider: Provider) -> Adapter:
        """Built when first needed; nothing heavy is imported for it yet."""
        if provider.api not in self._adapters:
            self._adapters[provider.api] = self._new_adapter(provider)
        return self._adapters[provider.api]

    def _new_adapter(self, provider: Provider) -> Adapter:
        if provider.api == "embedded":
            if self._launcher is None:
                raise ConfigError("The model on board is not available here: install it with `lyma embedded install`.")
            return SdkAdapter(OpenAIWire(), SocketConnections(self._launcher, self._settings.router.connect_s))
        if self._network is None:
            self._network = NetworkConnections(self._settings.router.connect_s)
        return SdkAdapter(AnthropicWire() if provider.api == "anthropic" else OpenAIWire(), self._network)
