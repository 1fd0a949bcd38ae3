"""When a turn ends, and what it used: decisions over plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.protocol.events import Usage

if TYPE_CHECKING:
    from lyma_server.factory.outcome import Room
    from lyma_server.protocol.events import StopReason
    from lyma_server.protocol.messages import AskBudget
    from lyma_server.router.chat import ChatRequest, FinishReason

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for text whose tokens nobody counted."""


@frozen
class Limits:
    """The most that a turn may use: model calls, tokens in and out, USD micros, seconds. Null: no limit."""

    steps: int
    tokens: int | None = None
    cost_micros: int | None = None
    seconds: float | None = None


def limits_of(budget: AskBudget | None, max_steps: int) -> Limits:
    """The stricter of the settings and the budget of the ask."""
    if budget is None:
        return Limits(max_steps)
    steps = max_steps if budget.max_steps is None else min(budget.max_steps, max_steps)
    seconds = None if budget.timeout_ms is None else budget.timeout_ms / 1000
    return Limits(steps, budget.max_tokens, budget.max_cost_micros, seconds)


def stop_before_call(limits: Limits, steps: int, usage: Usage | None) -> StopReason | None:
    """Whether another model call may be made after `steps` of them used `usage`.

    A cost that nobody knows cannot be held to its limit, so it counts as reached.
    """
    if steps >= limits.steps:
        return "max_steps"
    if usage is None:
        return None
    if limits.tokens is not None and usage.input_tokens + usage.output_tokens >= limits.tokens:
        return "budget"
    if limits.cost_micros is not None and (usage.cost_micros is None or usage.cost_micros >= limits.cost_micros):
        return "budget"
    return None


def stop_after_answer(finish: FinishReason, *, has_calls: bool) -> StopReason | None:
    """Whether an answer is the last one; null where tools are to run."""
    if finish == "refusal":
        return "refusal"
    if has_calls:
        return None
    return "max_tokens" if finish == "max_tokens" else "end_turn"


def tokens_left(limits: Limits, usage: Usage | None) -> int | None:
    """The longest answer that the limit leaves room for."""
    if limits.tokens is None:
        return None
    return max(1, limits.tokens - (usage.input_tokens + usage.output_tokens if usage else 0))


def room_left(limits: Limits, usage: Usage | None) -> Room:
    """What a run may use that the turn starts. A cost that nobody knows counts as all of it, as before a call."""
    from lyma_server.factory.outcome import Room

    used = usage or Usage(cost_micros=0)
    spent = limits.cost_micros if used.cost_micros is None else used.cost_micros
    return Room(
        None if limits.tokens is None else max(0, limits.tokens - used.input_tokens - used.output_tokens),
        None if limits.cost_micros is None else max(0, limits.cost_micros - (spent or 0)),
    )


def added(one: Usage | None, other: Usage) -> Usage:
    """The sum; a cost is known only where both are."""
    if one is None:
        return other
    known = one.cost_micros is not None and other.cost_micros is not None
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost_micros=(one.cost_micros or 0) + (other.cost_micros or 0) if known else None,
        estimated=one.estimated or other.estimated,
    )


def estimated(request: ChatRequest, text: str) -> Usage:
    """What a call has used that broke off after `text`."""
    blocks = [block for message in request.messages for block in message.blocks]
    sent = len(request.instructions) + sum(len(getattr(block, "text", "")) for block in blocks)
    return Usage(
        input_tokens=sent // CHARACTERS_PER_TOKEN,
        output_tokens=-(-len(text) // CHARACTERS_PER_TOKEN),
        estimated=True,
    )
