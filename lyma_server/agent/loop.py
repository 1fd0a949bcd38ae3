"""The turn itself: context, model, tools, model, … until there is nothing more to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lyma_server.agent.assembly import Assembler
from lyma_server.agent.calls import decline_calls, run_calls
from lyma_server.agent.context import gather, prompt_text
from lyma_server.agent.limits import added, estimated, stop_after_answer, stop_before_call, tokens_left
from lyma_server.agent.shrink import TOO_LONG, shrunk
from lyma_server.agent.texts import whole
from lyma_server.agent.tools.registry import specifications
from lyma_server.errors import AllFailed, StreamInterrupted
from lyma_server.protocol.events import Notice, TurnCompleted, TurnStarted, Usage, UsageReported
from lyma_server.router.chat import ChatRequest, Message, Origin, Text, ToolCall

if TYPE_CHECKING:
    from lyma_server.agent.ask import Ask
    from lyma_server.protocol.events import Attempt, EventBody, StopReason
    from lyma_server.router.chat import ChatEvent, Completed

NOT_RUN: dict[str, str] = {
    "max_steps": "Not run: the turn has made as many model calls as it may.",
    "budget": "Not run: the budget of the turn is used up.",
    "refusal": "Not run: the model refused.",
    "cancelled": "The person stopped the turn.",
    "interrupted": "Not run: the turn broke off.",
}


async def run(ask: Ask) -> StopReason:
    """Work until the turn ends by itself. Raises what the router raises, and UsageError."""
    await _begin(ask)
    while True:
        answer = await _ask_model(ask)
        stop = stop_after_answer(answer.finish, has_calls=bool(ask.waiting))
        stop = stop or stop_before_call(ask.limits, ask.steps, ask.usage)
        if stop:
            return stop
        await run_calls(ask, answer)


def end(ask: Ask, stop: StopReason) -> None:
    """Leave nothing half open: complete what was said, answer the calls, report, and say that it is over."""
    if not ask.events.begun:
        ask.events.emit(TurnStarted(prompt=prompt_text(ask.params.prompt)))
    _settle(ask, stop)
    decline_calls(ask, NOT_RUN.get(stop, NOT_RUN["interrupted"]))
    if stop == "budget" and ask.limits.cost_micros is not None and ask.usage and ask.usage.cost_micros is None:
        _notice(ask, "The price of this model is not known, so a limit in money cannot be held; the turn ends here.")
    ask.events.emit(TurnCompleted(stop_reason=stop, usage=ask.usage or Usage(cost_micros=0)))


async def _begin(ask: Ask) -> None:
    has_tools = bool(ask.tools)
    names = ask.settings.instructions if ask.in_project else None
    context = await gather(ask.params, ask.workspace, ask.bounds, names, has_tools=has_tools)
    ask.events.emit(TurnStarted(prompt=prompt_text(ask.params.prompt), sent=context.sent))
    for notice in (*((ask.refusal,) if ask.refusal else ()), *context.notices):
        _notice(ask, notice)
    if ask.log.failure:
        ask.log.on_failure(ask.log.failure)
    ask.instructions = ask.redactor.redact(whole(context.instructions))
    if ask.params.session is not None:
        ask.messages = await asyncio.to_thread(ask.log.messages)
    ask.earlier = len(ask.messages)
    ask.say(context.message)


async def _ask_model(ask: Ask) -> Completed:
    """One answer; where nobody takes a conversation so long, to a shorter one."""
    ask.steps += 1
    while True:
        told = len(ask.route)
        try:
            return await _ask_twice(ask)
        except AllFailed:
            if not _make_room(ask, ask.route[told:]):
                raise


async def _ask_twice(ask: Ask) -> Completed:
    """One model call; where its answer breaks off, once more."""
    request = ask.request = _request(ask)
    try:
        return await _answer(ask, request)
    except StreamInterrupted:
        _give_up(ask)
        ask.request = request
        return await _answer(ask, request)


def _make_room(ask: Ask, attempts: list[Attempt]) -> bool:
    """Leave something out of the conversation if it was too long and anything can be left out; whether that was done."""
    if not any(attempt.class_ in TOO_LONG for attempt in attempts):
        return False
    shorter = shrunk(ask.messages, ask.earlier)
    if shorter is None:
        return False
    _give_up(ask)
    ask.earlier = ask.earlier if len(shorter) == len(ask.messages) else 0
    ask.messages = shorter
    _notice(ask, "The conversation is too long for the model, so older parts of it are left out.")
    return True


async def _answer(ask: Ask, request: ChatRequest) -> Completed:
    assembler = ask.assembler = Assembler(ask.new_item)
    async with _closing(ask.router.stream(request, ask.tell_route)) as stream:
        async for event in stream:
            _emit(ask, assembler.feed(event))
            if assembler.answer is not None and ask.assembler is assembler:
                _accept(ask, assembler.answer)
    if assembler.answer is None:
        raise StreamInterrupted("The answer ended before it was complete; ask again.", partial=assembler.text)
    return assembler.answer


def _accept(ask: Ask, answer: Completed) -> None:
    """Make a whole answer part of the conversation, at once: a stop may come next. Its calls then wait to be run."""
    ask.request = ask.assembler = None
    ask.usage = added(ask.usage, answer.usage)
    message = ask.say(answer.message)
    ask.waiting = [block for block in message.blocks if isinstance(block, ToolCall)]
    if text := message.text:
        ask.texts.append(text)
    ask.events.emit(UsageReported(usage=ask.usage))


def _request(ask: Ask) -> ChatRequest:
    return ChatRequest(
        instructions=ask.instructions,
        messages=tuple(ask.messages),
        session=ask.session,
        tools=specifications(ask.tools),
        max_output_tokens=tokens_left(ask.limits, ask.usage),
        provider=ask.params.provider,
        prefer=ask.params.prefer,
        model=ask.params.model,
        folder=None if ask.workspace.root is None else str(ask.workspace.root),
    )


@asynccontextmanager
async def _closing(stream: AsyncIterator[ChatEvent]) -> AsyncIterator[AsyncIterator[ChatEvent]]:
    """Close the stream whatever happens, so that the provider sees its connection closed at once."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _give_up(ask: Ask) -> None:
    """Void what an interrupted answer said; it is paid for all the same."""
    _count_broken(ask)
    if ask.assembler is not None:
        _emit(ask, ask.assembler.discard("interrupted"))
    ask.assembler = ask.request = None


def _settle(ask: Ask, stop: StopReason) -> None:
    """Keep what a stopped answer had said; void what an interrupted one had."""
    if stop == "interrupted" or ask.assembler is None:
        _give_up(ask)
        return
    _count_broken(ask)
    text = ask.assembler.text
    _emit(ask, ask.assembler.settle(stop))
    ask.assembler = ask.request = None
    if text:
        ask.texts.append(text)
        ask.say(Message("assistant", (Text(text),), _last_origin(ask)))


def _count_broken(ask: Ask) -> None:
    """Estimate what an answer used that did not come to its end, if it had begun."""
    if ask.assembler is not None and ask.request is not None and ask.assembler.begun:
        ask.usage = added(ask.usage, estimated(ask.request, ask.assembler.text))


def _last_origin(ask: Ask) -> Origin | None:
    return Origin(ask.route[-1].provider, ask.route[-1].model) if ask.route else None


def _emit(ask: Ask, bodies: list[EventBody]) -> None:
    for body in bodies:
        ask.events.emit(body)


def _notice(ask: Ask, text: str) -> None:
    ask.events.emit(Notice(text=text, level="warning"))
