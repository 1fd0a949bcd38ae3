"""Makes a request smaller when a provider says that it is too large. Pure; each step gives up a little more.

Old tool output goes first, then all long tool output, then the oldest turns. The instructions, the first question and
the last one always stay: without them the answer would be to something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from lyma_server.router.chat import Message, Text, ToolResult

if TYPE_CHECKING:
    from lyma_server.router.chat import Block, ChatRequest

OLD_OUTPUT = 500
LONG_OUTPUT = 4000
RECENT_MESSAGES = 3
KEPT_SHARE = 2
LONGEST_GIST = 200


def shrink(request: ChatRequest, room: int | None = None) -> ChatRequest | None:
    """A smaller request, null where nothing can be given up. `room` is how many tokens an answer may have, where the
    provider said so: then only the limit of the answer is lowered, if that helps.
    """
    if room is not None and (request.max_output_tokens is None or request.max_output_tokens > room):
        return evolve(request, max_output_tokens=room)
    for messages in (
        _clipped(request.messages, len(request.messages) - RECENT_MESSAGES, OLD_OUTPUT),
        _clipped(request.messages, len(request.messages), LONG_OUTPUT),
        _without_oldest(request.messages),
    ):
        if messages != request.messages:
            return evolve(request, messages=messages)
    return None


def _clipped(messages: tuple[Message, ...], until: int, limit: int) -> tuple[Message, ...]:
    """Tool output in the first `until` messages, cut to `limit` characters."""
    return tuple(
        evolve(message, blocks=tuple(_clip(block, limit) for block in message.blocks)) if place < until else message
        for place, message in enumerate(messages)
    )


def _clip(block: Block, limit: int) -> Block:
    if not isinstance(block, ToolResult) or len(block.text) <= limit:
        return block
    note = "\n(… left out to save room)"
    return evolve(block, text=block.text[: max(limit - len(note), 0)] + note)


def _without_oldest(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop the older half, but for the first question; what was asked in between is kept as a line each. Cuts only where a
    question begins, so that no tool call is parted from its result.
    """
    questions = [place for place, message in enumerate(messages) if place and _is_question(message)]
    later = [place for place in questions if place >= len(messages) // KEPT_SHARE] or questions[-1:]
    if not later or later[0] <= 1:
        return messages
    dropped = messages[1 : later[0]]
    gists = [_gist(message) for message in dropped if _is_question(message)]
    lines = "".join(f"\n- {gist}" for gist in gists) or " none"
    note = Text(f"(Earlier turns were left out to save room. Questions in them:{lines})")
    first = evolve(messages[0], blocks=(*messages[0].blocks, note))
    return (first, *messages[later[0] :])


def _is_question(message: Message) -> bool:
    return message.role == "user" and any(isinstance(block, Text) and block.text.strip() for block in message.blocks)


def _gist(message: Message) -> str:
    text = " ".join(block.text for block in message.blocks if isinstance(block, Text))
    return " ".join(text.split())[:LONGEST_GIST]
