"""Runs the tools that a complete answer asks for, one after the other."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from lyma_server.agent.aside import ask_aside
from lyma_server.agent.limits import room_left
from lyma_server.agent.tools.base import Toolbox
from lyma_server.agent.tools.validation import complaints
from lyma_server.errors import LymaError, ProviderError, ToolError
from lyma_server.protocol.events import ItemCompleted, ItemStarted
from lyma_server.protocol.items import ToolResultItem
from lyma_server.router.chat import Message, ToolResult

if TYPE_CHECKING:
    from lyma_server.agent.ask import Ask
    from lyma_server.router.chat import Completed, ToolCall

MOST_MALFORMED = 2
"""Answers in a row whose arguments are no JSON that are sent back; one more ends the turn."""

log = logging.getLogger(__name__)


async def run_calls(ask: Ask, answer: Completed) -> None:
    """Run them and say what they returned. Raises ProviderError where the model keeps writing arguments that are no JSON."""
    _count_malformed(ask)
    while ask.waiting:
        call = ask.waiting[0]
        ask.running = ask.new_item()
        ask.events.emit(ItemStarted(item=ToolResultItem(id=ask.running, call=call.id)))
        text, is_error = await _outcome(ask, call, cut=answer.finish == "max_tokens")
        _finish(ask, text, is_error=is_error)


def decline_calls(ask: Ask, reason: str) -> None:
    """Answer the calls that were not run, or not to their end, so that the conversation can go on later."""
    while ask.waiting:
        if ask.running is None:
            ask.running = ask.new_item()
            ask.events.emit(ItemStarted(item=ToolResultItem(id=ask.running, call=ask.waiting[0].id)))
        _finish(ask, reason, is_error=True)


def _finish(ask: Ask, text: str, *, is_error: bool) -> None:
    call, item = ask.waiting.pop(0), ask.running
    ask.running = None
    ask.say(Message("user", (ToolResult(call.id, text, is_error),)))
    ask.events.emit(ItemCompleted(item=ToolResultItem(id=item or call.id, call=call.id, text=text, is_error=is_error)))


def _count_malformed(ask: Ask) -> None:
    ask.malformed = ask.malformed + 1 if any(call.arguments is None for call in ask.waiting) else 0
    if ask.malformed > MOST_MALFORMED:
        raise ProviderError(
            "The model wrote arguments for a tool that are no JSON three times in a row; ask again, or try another model.",
            class_="tool_args_invalid",
        )


async def _outcome(ask: Ask, call: ToolCall, *, cut: bool) -> tuple[str, bool]:
    """What the model is told, and whether that is an error."""
    try:
        return await _run(ask, call, cut=cut), False
    except LymaError as error:
        return error.message, True
    except Exception:
        log.exception("The tool %s failed", call.name)
        return f"The tool {call.name} failed inside of Lyma; this is a fault of Lyma and not of the call.", True


async def _run(ask: Ask, call: ToolCall, *, cut: bool) -> str:
    tool = next((tool for tool in ask.tools if tool.name == call.name), None)
    if tool is None:
        raise ToolError(
            f"There is no tool {call.name}; there are {', '.join(tool.name for tool in ask.tools) or 'none'}."
        )
    if cut:
        raise ToolError("The answer was cut off at its longest, so this call was not run; do it in smaller steps.")
    if call.arguments is None:
        raise ToolError("The arguments are no JSON object, so this call was not run; write them again.")
    if wrong := await asyncio.to_thread(complaints, tool, call.arguments):
        raise ToolError(f"The arguments of {tool.name} do not fit its schema: {wrong}.")
    return await tool.run(call.arguments, toolbox(ask, call.id))


def toolbox(ask: Ask, call: str) -> Toolbox:
    """What a call may use."""
    return Toolbox(
        call=call,
        bounds=ask.bounds,
        workspace=ask.workspace,
        person=ask.person,
        settings=ask.settings,
        redactor=ask.redactor,
        edits=ask.edits,
        emit=ask.events.emit,
        new_item=ask.new_item,
        commands=ask.commands,
        subagents=ask.subagents,
        ask_model=partial(ask_aside, ask),
        charge=ask.charge,
        room=lambda: room_left(ask.limits, ask.usage),
    )
