"""Makes a conversation shorter where no model takes it whole. Pure."""

from __future__ import annotations

import attrs

from lyma_server.router.chat import Block, Message, Text, ToolResult

TOO_LONG = frozenset({"context_overflow", "payload_too_large", "request_exceeds_tier"})
"""The classes of failure for which a shorter conversation is the remedy."""
LONG_RESULT = 1000
"""Characters; shorter results of tools stay."""
LEFT_OUT = "[This result was left out to make room. Call the tool again if you need it.]"
EARLIER = "[The conversation before this was left out to make room.]"


def shrunk(messages: list[Message], own: int) -> list[Message] | None:
    """A shorter conversation, or null where nothing more can be left out. The messages from `own` on are of this turn.

    First the long results of tools go, all but those that the model has not seen yet; then what was said in earlier turns.
    """
    seen = next((place for place in reversed(range(len(messages))) if messages[place].role == "assistant"), 0)
    without_results = [*map(_without_results, messages[:seen]), *messages[seen:]]
    if without_results != messages:
        return without_results
    if own > 0:
        return [Message("user", (Text(EARLIER),)), *messages[own:]]
    return None


def _without_results(message: Message) -> Message:
    return attrs.evolve(message, blocks=tuple(map(_shortened, message.blocks)))


def _shortened(block: Block) -> Block:
    if isinstance(block, ToolResult) and len(block.text) > LONG_RESULT:
        return attrs.evolve(block, text=LEFT_OUT)
    return block
