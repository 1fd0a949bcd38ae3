"""One model call of a run: its upper bound is set aside first, in the run and in all above it, and what it used is settled
after. Attempts that a provider may have worked on count in full, each.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from attrs import define, evolve

from lyma_server.errors import LymaError, ProviderError
from lyma_server.factory.budget import Amount
from lyma_server.factory.model_call import MOST_BYTES_A_TOKEN, Exchange, PriceUnknown, most_of, used_by
from lyma_server.router.chat import Completed, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolCallDelta

if TYPE_CHECKING:
    from lyma_server.factory.budget import Budget, Reservation
    from lyma_server.factory.model_port import Model
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import Attempt, Usage
    from lyma_server.router.chat import Block, ChatEvent, ChatRequest, Message
    from lyma_server.router.prices import ModelFacts

UNREACHED: Final = frozenset({"connect_error", "dns_error", "tls_error"})
"""How attempts end that no provider ever heard of."""

LONGEST_ANSWER: Final = 512 << 10
"""Bytes; it must fit into one message to the run."""

FRAME: Final = 64
"""Bytes for what a provider puts around a call, a message or a tool of its own."""


class CostUnbounded(LymaError):
    """No model may be asked, since none has a known price."""

    kind, code = "run_failed", -31013


@define
class Tally:
    """Tokens that were charged, to a run and to all above it."""

    tokens_in: int = 0
    tokens_out: int = 0
    above: Tally | None = None

    def add(self, tokens_in: int, tokens_out: int) -> None:
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        if self.above is not None:
            self.above.add(tokens_in, tokens_out)


@define
class Charging:
    """The money side of one call: what is set aside for the attempt under way."""

    budget: Budget
    tally: Tally
    most: Amount
    prompt_bytes: int
    max_output_tokens: int
    reservation: Reservation | None = None
    last: Attempt | None = None

    def reserve(self) -> None:
        """Set the upper bound of one attempt aside. Raises Exhausted."""
        self.reservation = self.budget.reserve(self.most)

    def attempt_over(self, attempt: Attempt) -> None:
        """Between two attempts: charge the one that failed, where it may have cost something, and make room for the next."""
        self.last = attempt
        if attempt.class_ not in {"ok", "cancelled"} and attempt.next != "fail" and may_have_cost(attempt):
            self.settle(None)
            self.reserve()

    def settle(self, usage: Usage | None, used: Amount | None = None) -> None:
        """Charge the attempt under way: `used`, or all that was set aside."""
        if self.reservation is None:
            return
        reservation, self.reservation = self.reservation, None
        charged = reservation.settle(used)
        if usage is not None and charged == used:
            self.tally.add(usage.input_tokens, usage.output_tokens)
        elif charged.tokens:
            self.tally.add(self.prompt_bytes, self.max_output_tokens)

    def give_up(self) -> None:
        """The call failed or was given up: charge all, unless the last attempt cannot have cost anything."""
        free = self.last is not None and self.last.class_ != "cancelled" and not may_have_cost(self.last)
        self.settle(None, Amount(turns=1) if free else None)


@define
class Caller:
    """Asks the model for one run. `calls` counts the calls that were begun."""

    model: Model
    budget: Budget
    tally: Tally
    max_output_tokens: int
    calls: int = 0

    async def ask(self, request: ChatRequest) -> Completed:
        """One call. Raises Exhausted before it would cost too much, CostUnbounded, and what the router raises."""
        prices = {name: price for name, price in self.model.prices(request).items() if price is not None}
        charging = self._charging(request, prices)
        charging.reserve()
        self.calls += 1
        heard, longest = 0, min(LONGEST_ANSWER, self.max_output_tokens * MOST_BYTES_A_TOKEN)
        try:
            asked = evolve(request, among=tuple(prices))
            async with aclosing(self.model.stream(asked, charging.attempt_over)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        _settle(charging, event, prices)
                        return event
                    heard += _length(event)
                    if heard > longest:
                        raise ProviderError("The model's answer is longer than was asked for; ask another model.")
        finally:
            charging.give_up()
        raise ProviderError("The model gave no answer; try again.")

    def _charging(self, request: ChatRequest, prices: dict[str, ModelFacts]) -> Charging:
        size = size_of(request)
        try:
            most = most_of(size, self.max_output_tokens, prices.values())
        except PriceUnknown:
            raise CostUnbounded(
                f"The cost of this run cannot be limited: no provider has a {request.model} model whose price is known; "
                f"set providers.NAME.{request.model}, or add a local one."
            ) from None
        return Charging(self.budget, self.tally, most, size, self.max_output_tokens)


def may_have_cost(attempt: Attempt) -> bool:
    """Whether a provider may have worked on an attempt that failed, and ask for money."""
    return attempt.class_ not in UNREACHED and (attempt.status is None or attempt.status < 400)


def size_of(request: ChatRequest) -> int:
    """The bytes of a prompt, none of which can hold more than one token; with what is put around its parts."""
    tools = [[tool.name, tool.description, tool.schema] for tool in request.tools]
    said = [_plain(message) for message in request.messages]
    text = json.dumps([request.instructions, tools, said], ensure_ascii=False)
    return len(text.encode("utf-8", "replace")) + FRAME * (1 + len(tools) + len(said))


def _plain(message: Message) -> Json:
    return [message.role, *(_parts(block) for block in message.blocks)]


def _parts(block: Block) -> Json:
    if isinstance(block, ToolCall):
        return [block.id, block.name, block.arguments, block.raw]
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Thinking):
        return [block.text, block.signature]
    return [block.call, block.text]


def _settle(charging: Charging, completed: Completed, prices: dict[str, ModelFacts]) -> None:
    origin = completed.message.origin
    price = prices.get(origin.provider) if origin is not None else None
    answered = sum(_said(block) for block in completed.message.blocks)
    used = used_by(completed.usage, Exchange(charging.prompt_bytes, answered), price)
    charging.settle(completed.usage, used)


def _said(block: Block) -> int:
    if isinstance(block, ToolCall):
        return len(block.raw.encode("utf-8", "replace"))
    return len(block.text.encode("utf-8", "replace")) if isinstance(block, Text | Thinking) else 0


def _length(event: ChatEvent) -> int:
    if isinstance(event, TextDelta | ThinkingDelta):
        return len(event.text)
    return len(event.arguments) if isinstance(event, ToolCallDelta) else 0
