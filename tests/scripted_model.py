"""A model that says what the test wrote down, at the price that the test names, without a network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lyma_server.protocol.events import Attempt, Usage
from lyma_server.router.chat import Completed, Message, Origin, Text, TextDelta, ToolCall
from lyma_server.router.prices import FREE, ModelFacts, Tier

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from lyma_server.router.chat import ChatEvent, ChatRequest

DEAR = ModelFacts(100_000, Tier(2_000_000, 200_000, 10_000_000))
"""Two micros for a token of the prompt, ten for one of the answer."""

HONEST = Usage(input_tokens=900, output_tokens=90)


def say(text: str, usage: Usage = HONEST, finish: str = "end_turn") -> Completed:
    return Completed(Message("assistant", (Text(text),), Origin("fake", "m")), finish, usage)


def call(*calls: tuple[str, dict[str, Any] | None], usage: Usage = HONEST) -> Completed:
    """Ask for tools, by the names that the model knows."""
    blocks = tuple(ToolCall(f"c{at}", name, arguments, "{}") for at, (name, arguments) in enumerate(calls))
    return Completed(Message("assistant", blocks, Origin("fake", "m")), "tool_calls", usage)


class Hang:
    """Never answers; `begun` is set when it is asked."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.closed = False


class ScriptedModel:
    """`answers` in turn, the last one for ever: an answer, an error to raise, attempts to tell before the next, or a Hang."""

    def __init__(self, *answers: Any, prices: dict[str, ModelFacts | None] | None = None) -> None:
        self.answers = list(answers)
        self.known = {"fake": FREE} if prices is None else prices
        self.requests: list[ChatRequest] = []

    def prices(self, request: ChatRequest) -> dict[str, ModelFacts | None]:
        return self.known

    async def stream(self, request: ChatRequest, on_attempt: Callable[[Attempt], None]) -> AsyncGenerator[ChatEvent]:
        self.requests.append(request)
        while isinstance(self._first(), Attempt):
            on_attempt(self.answers.pop(0))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(request) if callable(answer) else answer
        await asyncio.sleep(0)
        if isinstance(answer, Hang):
            try:
                answer.begun.set()
                await asyncio.Event().wait()
            finally:
                answer.closed = True
        if isinstance(answer, BaseException):
            raise answer
        for block in answer.message.blocks:
            if isinstance(block, Text):
                yield TextDelta(block.text)
        on_attempt(attempt("ok", following="done"))
        yield answer

    def _first(self) -> Any:
        return self.answers[0]


def attempt(class_: str, *, status: int | None = None, following: Any = "fallback") -> Attempt:
    return Attempt(provider="fake", model="m", class_=class_, next=following, ms=1, status=status)
