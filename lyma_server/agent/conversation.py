"""A conversation in the form that every provider takes: roles alternate, and each tool call has its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from lyma_server.router.chat import Message, Thinking, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.router.chat import Block

NEVER_RAN = "This call was not run: the turn ended before."


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Merge neighbours that have the user's role, results first, and give every call without a result an error for one.

    A turn that was cut short leaves such a conversation; providers refuse it.
    """
    done: list[Message] = []
    for message in messages:
        last = done[-1] if done else None
        if message.role == "assistant" and not message.blocks:
            continue
        if last is not None and last.role == message.role == "user":
            done[-1] = Message("user", (*last.blocks, *message.blocks))
        else:
            done.append(message)
    return tuple(_answered(done))


def _answered(messages: list[Message]) -> Iterable[Message]:
    calls: tuple[str, ...] = ()
    for message in messages:
        if message.role == "user":
            yield attrs.evolve(message, blocks=_results_first(message.blocks, calls))
            calls = ()
            continue
        if calls:
            yield Message("user", _results_first((), calls))
        yield message
        calls = tuple(block.id for block in message.blocks if isinstance(block, ToolCall))
    if calls:
        yield Message("user", _results_first((), calls))


def _results_first(blocks: tuple[Block, ...], calls: tuple[str, ...]) -> tuple[Block, ...]:
    results = {block.call: block for block in blocks if isinstance(block, ToolResult)}
    answers = tuple(results.get(call, ToolResult(call, NEVER_RAN, is_error=True)) for call in calls)
    return (*answers, *(block for block in blocks if not isinstance(block, ToolResult)))


def without_broken_thinking(before: Message, after: Message) -> Message:
    """`after` is `before` redacted: drop signed thinking that was changed, since its signature no longer holds."""
    kept = tuple(
        new
        for old, new in zip(before.blocks, after.blocks, strict=True)
        if not (isinstance(old, Thinking) and old.signature and old != new)
    )
    return attrs.evolve(after, blocks=kept)
