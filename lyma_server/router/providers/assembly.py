"""What both wire formats share when an answer is put together from its parts."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from attrs import define, field

from lyma_server.protocol.events import Usage
from lyma_server.router.chat import Completed, Message, Origin, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import Block, FinishReason

# Where a provider does not count, four characters are taken for a token: close for English and code, marked estimated.
CHARACTERS_PER_TOKEN = 4

MOST_TOKENS = 1_000_000_000
"""No call takes more; a larger count is a mistake, and its cost would not fit into the ledger."""


class BadPart(Exception):
    """A part of a stream that is an error, or no part of an answer. `body` is what came."""

    def __init__(self, body: Json) -> None:
        super().__init__("bad part")
        self.body = body


def written(value: Json) -> str:
    """A text that a provider wrote, empty where it wrote nothing. Raises TypeError for anything else, so that it fails
    here, where it is this provider's failure, and not where it is used.
    """
    if not value:
        return ""
    if not isinstance(value, str):
        raise TypeError
    return value


def new_call_id() -> str:
    """An id of our own: those of providers repeat, and some have characters that others refuse."""
    return f"call_{secrets.token_hex(12)}"


def parse_arguments(raw: str) -> dict[str, Json] | None:
    """The arguments of a call, null where they are no JSON object. Nothing written is an empty object (Qwen)."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@define
class GrowingCall:
    """A tool call that is being streamed. `wire_id` is the provider's name for it."""

    index: int
    wire_id: str = ""
    name: str = ""
    parts: list[str] = field(factory=list)

    def finished(self) -> ToolCall:
        """The call as the agent sees it."""
        raw = "".join(self.parts)
        return ToolCall(id=new_call_id(), name=self.name, arguments=parse_arguments(raw), raw=raw)


@define
class GrowingText:
    parts: list[str] = field(factory=list)

    def finished(self) -> Text:
        return Text("".join(self.parts))


@define
class GrowingThinking:
    parts: list[str] = field(factory=list)
    signature: str | None = None
    redacted: bool = False

    def finished(self) -> Thinking:
        return Thinking("".join(self.parts), self.signature, self.redacted)


def complete(
    origin: Origin,
    growing: list[GrowingText | GrowingThinking | GrowingCall],
    finish: FinishReason,
    usage: Usage | None,
) -> Completed:
    """The whole answer. Empty texts are dropped; calls make it a tool turn, whatever else the provider said."""
    blocks: list[Block] = []
    for part in growing:
        block = part.finished()
        if not isinstance(block, Text) or block.text:
            blocks.append(block)
    calls = any(isinstance(block, ToolCall) for block in blocks)
    if finish == "end_turn" and calls:
        finish = "tool_calls"
    elif finish == "tool_calls" and not calls:
        finish = "end_turn"
    return Completed(Message("assistant", tuple(blocks), origin), finish, usage or estimate(blocks))


def estimate(blocks: list[Block]) -> Usage:
    """Usage of an answer whose provider did not say: the output by its length, the input unknown."""
    characters = sum(len(block.raw) if isinstance(block, ToolCall) else len(block.text) for block in blocks)
    return Usage(output_tokens=-(-characters // CHARACTERS_PER_TOKEN), estimated=True)


def count(value: Json) -> int:
    """A number of tokens that a provider wrote, 0 where it wrote something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS else 0
