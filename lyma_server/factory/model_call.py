"""What one model call can cost at most, and what it did cost: the bounds that budgets count with.

A token is at least one byte, so a prompt has at most as many tokens as bytes. And a token is at most so long, on average:
usage that claims fewer tokens than that for the bytes that went over the wire is not believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.factory.budget import Amount
from lyma_server.router.prices import cost_micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.protocol.events import Usage
    from lyma_server.router.prices import ModelFacts

MOST_BYTES_A_TOKEN: Final = 16
"""On average over a whole text; English has about 4, code about 3."""


class PriceUnknown(Exception):
    """A model that might answer has no known price, so its cost cannot be limited."""


@frozen
class Exchange:
    """What one call sent and received, in bytes of UTF-8 as Lyma itself counted them."""

    prompt_bytes: int
    answer_bytes: int


def most_of(prompt_bytes: int, max_output_tokens: int, prices: Iterable[ModelFacts | None]) -> Amount:
    """The upper bound of one call, whichever of the models with these `prices` answers it.

    Raises PriceUnknown where one has no price, or there is no model at all.
    """
    known = list(prices)
    if not known or any(price is None for price in known):
        raise PriceUnknown
    dearest = max(_cost(price, prompt_bytes, 0, max_output_tokens) for price in known)
    return Amount(turns=1, tokens=prompt_bytes + max_output_tokens, cost_micros=dearest)


def used_by(usage: Usage | None, exchange: Exchange, price: ModelFacts | None) -> Amount | None:
    """What one call used by the provider's word, null where that is missing or cannot be true."""
    if usage is None or usage.estimated or price is None:
        return None
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    if any(type(count) is not int or count < 0 for count in counts) or usage.cached_tokens > usage.input_tokens:
        return None
    if _is_too_low(usage.input_tokens, exchange.prompt_bytes) or _is_too_low(
        usage.output_tokens, exchange.answer_bytes
    ):
        return None
    cost = _cost(price, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return Amount(turns=1, tokens=usage.input_tokens + usage.output_tokens, cost_micros=cost)


def _is_too_low(tokens: int, size: int) -> bool:
    return tokens * MOST_BYTES_A_TOKEN < size


def _cost(price: ModelFacts | None, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
    return cost_micros(price, input_tokens, cached_tokens, output_tokens) or 0
