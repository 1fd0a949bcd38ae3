"""One model call beside the conversation, such as for the draft of an agent: its answer is whole, and nobody sees it grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.agent.limits import tokens_left
from lyma_server.router.chat import ChatRequest, Completed, Message, Text

if TYPE_CHECKING:
    from lyma_server.agent.ask import Ask
    from lyma_server.agent.ports import ChatRouter, OnAttempt
    from lyma_server.protocol.events import Usage

LONGEST_ANSWER: Final = 4096
"""Tokens."""


@frozen
class Aside:
    """What to ask, and of whom: the one `provider` if only it may be asked, for the work in `folder`."""

    instructions: str
    prompt: str
    session: str = "draft"
    provider: str | None = None
    folder: str | None = None
    most: int = LONGEST_ANSWER


async def ask_once(router: ChatRouter, aside: Aside, on_attempt: OnAttempt) -> tuple[str, Usage | None]:
    """The answer and what it used. Raises what the router raises."""
    request = ChatRequest(
        aside.instructions,
        (Message("user", (Text(aside.prompt),)),),
        session=aside.session,
        max_output_tokens=aside.most,
        provider=aside.provider,
        folder=aside.folder,
    )
    text, usage = "", None
    async for event in router.stream(request, on_attempt):
        if isinstance(event, Completed):
            text = event.message.text
            usage = event.usage
    return text, usage


async def ask_aside(ask: Ask, instructions: str, prompt: str) -> str:
    """The same within a turn: with its provider, within its limits, and counted in its usage."""
    left = tokens_left(ask.limits, ask.usage)
    aside = Aside(
        instructions,
        ask.redactor.redact(prompt),
        session=ask.session,
        provider=ask.params.provider,
        folder=str(ask.bounds.root),
        most=LONGEST_ANSWER if left is None else min(LONGEST_ANSWER, left),
    )
    text, usage = await ask_once(ask.router, aside, ask.tell_route)
    if usage is not None:
        ask.charge(usage)
    return text
