"""What a model costs and how much it can read, as far as it is publicly known (models.toml). Never a guess."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import frozen

from lyma_server.config.addresses import socket_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_DATA = Path(__file__).with_name("models.toml")
_MILLION = 1_000_000
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@frozen
class Tier:
    """Integer USD micros for a million tokens."""

    input: int
    cached: int
    output: int


@frozen
class ModelFacts:
    """`context_tokens` is the window. Requests with more than `above` input tokens cost `dear` instead of `price`."""

    context_tokens: int
    price: Tier
    above: int | None = None
    dear: Tier | None = None


FREE = ModelFacts(0, Tier(0, 0, 0))
"""What runs on this machine costs nothing."""


def facts_of(vendor: str, model: str) -> ModelFacts | None:
    """What is known of a vendor's model; a dated name is the model without its date. None where nothing is known."""
    known = _load().get(vendor, {})
    return known.get(model) or known.get(_DATE.sub("", model))


def price_of(vendor: str, model: str, base_url: str | None = None) -> ModelFacts | None:
    """The price of a call: free on this machine, else what is known, else None."""
    if vendor == "embedded" or is_local(base_url):
        return FREE
    return facts_of(vendor, model)


def is_local(base_url: str | None) -> bool:
    """Whether an address is on this machine."""
    if socket_path(base_url) is not None:
        return True
    try:
        host = urlsplit(base_url or "").hostname
    except ValueError:
        return False
    return host in _LOOPBACK


def cost_micros(facts: ModelFacts | None, input_tokens: int, cached_tokens: int, output_tokens: int) -> int | None:
    """Integer USD micros, rounded once, half up; None where no price is known.

    `input_tokens` counts all input, `cached_tokens` those of them that were read from the provider's cache. What a
    provider takes for writing its cache is not known here and left out.
    """
    if facts is None:
        return None
    tier = (
        facts.dear if facts.dear is not None and facts.above is not None and input_tokens > facts.above else facts.price
    )
    cached = min(max(cached_tokens, 0), max(input_tokens, 0))
    fresh = max(input_tokens, 0) - cached
    total = fresh * tier.input + cached * tier.cached + max(output_tokens, 0) * tier.output
    return (total + _MILLION // 2) // _MILLION


@cache
def _load() -> Mapping[str, Mapping[str, ModelFacts]]:
    import tomllib

    tables = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    return {
        vendor: {model: _read(row) for model, row in table.items() if isinstance(row, dict)}
        for vendor, table in tables.items()
        if isinstance(table, dict)
    }


def _read(row: Mapping[str, int]) -> ModelFacts:
    dear = Tier(row["above_input"], row["above_cached"], row["above_output"]) if "above" in row else None
    return ModelFacts(row["context"], Tier(row["input"], row["cached"], row["output"]), row.get("above"), dear)
