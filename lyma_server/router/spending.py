"""What calls cost: each attempt is priced and written down, and the day's cap is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.errors import ProviderError
from lyma_server.protocol.base import evolve
from lyma_server.protocol.events import Usage
from lyma_server.protocol.messages import ModelInfo
from lyma_server.router.chat import Text, Thinking, ToolCall, ToolResult
from lyma_server.router.classification import vendor
from lyma_server.router.ledger import AttemptRow, Ledger, Totals, is_over_cap
from lyma_server.router.prices import FREE, cost_micros, facts_of, price_of
from lyma_server.router.providers.assembly import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lyma_server.router.chat import Block, ChatRequest
    from lyma_server.router.fleet import Station
    from lyma_server.router.prices import ModelFacts
    from lyma_server.router.providers.base import ListedModel, Provider
    from lyma_server.router.trial import Trial

MICROS = 1_000_000
USUAL_ANSWER = 1000
"""Tokens of an answer, where two prices are compared before there is one."""


class Spending:
    """The ledger with its prices. `cap_micros` is the most to spend in a day, in integer USD micros; null for no limit."""

    def __init__(self, ledger: Ledger, cap_micros: int | None) -> None:
        self._ledger = ledger
        self._cap_micros = cap_micros

    def usage_of(self, trial: Trial) -> Usage:
        """What an attempt used and cost. One that broke off after it had begun to answer is estimated by its length."""
        if trial.completed is not None:
            usage = trial.completed.usage
            if usage.estimated and not usage.input_tokens:
                usage = evolve(usage, input_tokens=_tokens_of(trial.request))
        elif trial.committed or trial.thought:
            said = _tokens(sum(map(len, trial.said)))
            usage = Usage(input_tokens=_tokens_of(trial.request), output_tokens=said, estimated=True)
        else:
            return Usage(cost_micros=0)
        facts = price_of(*_place(trial.station.provider, trial.model), trial.station.provider.base_url)
        cost = cost_micros(facts, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        return evolve(usage, cost_micros=cost)

    def record(self, trial: Trial, class_: str, usage: Usage) -> None:
        """Write an attempt down."""
        row = AttemptRow(
            session=trial.request.session,
            provider=trial.station.provider.name,
            key=trial.fingerprint,
            model=trial.model,
            class_=class_,
            ms=trial.ms,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost_micros=usage.cost_micros,
            estimated=usage.estimated,
        )
        self._ledger.record(row)

    def today(self) -> Mapping[str, Totals]:
        """What was used since midnight, by provider."""
        return self._ledger.today()

    def affordable(self, stations: Iterable[Station]) -> tuple[Station, ...]:
        """Those that may still be asked today: all, or only what costs nothing once the cap is reached.

        Raises ProviderError where that leaves none.
        """
        asked = tuple(stations)
        if not is_over_cap(self._ledger.today(), self._cap_micros):
            return asked
        free = tuple(station for station in asked if _is_free(station))
        if asked and not free:
            raise ProviderError(
                f"Today's limit of {(self._cap_micros or 0) / MICROS:.2f} USD is reached: raise router.daily_cap_micros, "
                "add a local provider, or go on tomorrow.",
                attempts=[],
                retry_after_ms=None,
            )
        return free


def window_of(station: Station) -> int | None:
    """The context window of a station in tokens, as it is configured or known."""
    configured = station.provider.settings.context_tokens
    facts = facts_of(*_place(station.provider, station.model))
    return configured or (facts.context_tokens if facts is not None else None)


def costs_more(station: Station, preferred: Station, request: ChatRequest) -> str | None:
    """The sentence that tells a person so, where asking `station` costs more than asking the one they put first, or may."""
    here, there = _price(station), _price(preferred)
    if station is preferred or there is None:
        return None
    name = f"{station.provider.name} {station.model}"
    usual = f"{preferred.provider.name} {preferred.model}"
    if here is None:
        return f"{name} answers in place of {usual}; what it costs is not known."
    size = _tokens_of(request)
    costs = [cost_micros(facts, size, 0, USUAL_ANSWER) or 0 for facts in (here, there)]
    if costs[0] <= costs[1]:
        return None
    return f"{name} answers in place of {usual} and costs more: {_in_words(here)}, against {_in_words(there)}."


def price_at(provider: Provider, model: str) -> ModelFacts | None:
    """What a model costs at a provider, as far as that is known."""
    return price_of(*_place(provider, model), provider.base_url)


def _price(station: Station) -> ModelFacts | None:
    return price_at(station.provider, station.model)


def _in_words(facts: ModelFacts) -> str:
    if facts is FREE:
        return "nothing"
    price = facts.price
    return f"${price.input / MICROS:g} in and ${price.output / MICROS:g} out for a million tokens"


def describe(provider: Provider, model: ListedModel) -> ModelInfo:
    """What is known of a model that a provider lists: its own word first."""
    known = facts_of(*_place(provider, model.id))
    price: ModelFacts | None = price_of(*_place(provider, model.id), provider.base_url)
    return ModelInfo(
        provider=provider.name,
        id=model.id,
        context_tokens=model.context_tokens or (known.context_tokens if known is not None else None),
        input_micros=price.price.input if price is not None else None,
        output_micros=price.price.output if price is not None else None,
    )


def _place(provider: Provider, model: str) -> tuple[str, str]:
    name = "embedded" if provider.api == "embedded" else vendor(provider.name, provider.base_url)
    return name, model


def _is_free(station: Station) -> bool:
    return _price(station) is FREE


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _tokens_of(request: ChatRequest) -> int:
    characters = len(request.instructions) + sum(_length(b) for message in request.messages for b in message.blocks)
    return _tokens(characters)


def _length(block: Block) -> int:
    if isinstance(block, ToolCall):
        return len(block.name) + len(block.raw)
    return len(block.text) if isinstance(block, Text | Thinking | ToolResult) else 0
