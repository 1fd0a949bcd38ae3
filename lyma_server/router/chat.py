"""A conversation in nobody's wire format. Providers translate from and to it; the agent loop speaks nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import Usage

FinishReason: TypeAlias = Literal["end_turn", "tool_calls", "max_tokens", "refusal"]


@frozen
class Origin:
    """Who said it. Thinking goes back only to the identical origin."""

    provider: str
    model: str


@frozen
class Text:
    text: str


@frozen
class Thinking:
    """`signature` is opaque; a redacted block has a signature and no text."""

    text: str
    signature: str | None = None
    redacted: bool = False


@frozen
class ToolCall:
    """`id` is Lyma's own (`^[a-zA-Z0-9_-]+$`); `arguments` parsed, or null where the model wrote no valid JSON object,
    which then stands in `raw`.
    """

    id: str
    name: str
    arguments: dict[str, Json] | None
    raw: str = ""


@frozen
class ToolResult:
    call: str
    text: str
    is_error: bool = False


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult


@frozen
class Message:
    """User messages hold Text and ToolResult; assistant messages hold Text, Thinking and ToolCall and name their origin."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    origin: Origin | None = None

    @property
    def text(self) -> str:
        """All that it says as text."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


@frozen
class ToolSpec:
    """`schema` is the JSON Schema of the arguments."""

    name: str
    description: str
    schema: dict[str, Json]


@frozen
class ChatRequest:
    """One model call. `session` pins the key ring's pointer, so that prompt caches keep working. `provider` pins: nothing
    is sent elsewhere; `prefer` is only tried first; `among` names the only ones that may be asked. `folder` is the workspace,
    for folder pins.
    """

    instructions: str
    messages: tuple[Message, ...]
    session: str
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    max_output_tokens: int | None = None
    provider: str | None = None
    prefer: str | None = None
    among: tuple[str, ...] | None = None
    model: str | None = None
    folder: str | None = None


@frozen
class TextDelta:
    text: str


@frozen
class ThinkingDelta:
    text: str


@frozen
class ToolCallDelta:
    """A call at `index` grows; its arguments are only to be shown, never to be used, before `Completed`."""

    index: int
    name: str
    arguments: str


@frozen
class Restarted:
    """What was streamed since the last `Completed` is void (only thinking can be): another candidate begins anew."""

    reason: str


@frozen
class Remark:
    """Something that the person should know and that is no part of the answer."""

    text: str


@frozen
class Completed:
    """The whole answer. Tool calls in it are complete and come with a finish reason."""

    message: Message
    finish: FinishReason
    usage: Usage


ChatEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | Restarted | Remark | Completed
