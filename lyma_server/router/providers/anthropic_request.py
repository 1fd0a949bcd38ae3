"""A request in Anthropic's message format. Pure; knows no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.router.chat import Origin, Text
from lyma_server.router.conversation import Said, arrange, tool_name, written_arguments

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import Thinking, ToolSpec
    from lyma_server.router.conversation import Answered, Turn
    from lyma_server.router.providers.base import Call

# The format demands a limit. A request of more than a model can write is refused, so this is one that all of the current
# models take; `max_output_tokens` of the provider sets another.
OUTPUT_LIMIT = 32_000
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
CACHED = {"type": "ephemeral"}


def build_body(call: Call) -> dict[str, Json]:
    """The JSON body of a streamed call. The instructions and the end of the conversation are marked for the cache."""
    request = call.request
    turns = arrange(request.messages, Origin(call.provider.name, call.model) if call.history != "plain" else None)
    body: dict[str, Json] = {
        "model": call.model,
        "max_tokens": request.max_output_tokens or call.provider.settings.max_output_tokens or OUTPUT_LIMIT,
        "messages": build_messages(turns, padded=call.history == "padded"),
        "stream": True,
    }
    if request.instructions.strip():
        body["system"] = [{"type": "text", "text": request.instructions, "cache_control": CACHED}]
    tools = [_tool(spec) for spec in request.tools] or _tools_of(turns)
    if tools:
        body["tools"] = tools
        choice = TOOL_CHOICES[request.tool_choice] if request.tools else "none"
        if choice != "auto":
            body["tool_choice"] = {"type": choice}
    return {name: value for name, value in body.items() if name not in call.without}


def build_messages(turns: tuple[Turn, ...], *, padded: bool = False) -> list[dict[str, Json]]:
    """The turns as messages. `padded` puts an empty thought before calls that have none (DeepSeek demands one)."""
    messages: list[dict[str, Json]] = [
        {"role": "user", "content": _said(turn)}
        if isinstance(turn, Said)
        else {"role": "assistant", "content": _answered(turn, padded=padded)}
        for turn in turns
    ]
    messages[-1]["content"][-1]["cache_control"] = CACHED
    return messages


def _said(turn: Said) -> list[dict[str, Json]]:
    content: list[dict[str, Json]] = []
    for result in turn.results:
        block: dict[str, Json] = {"type": "tool_result", "tool_use_id": result.call, "content": result.text}
        if result.is_error:
            block["is_error"] = True
        content.append(block)
    return content + [{"type": "text", "text": text} for text in turn.texts]


def _answered(turn: Answered, *, padded: bool) -> list[dict[str, Json]]:
    content = [block for part in turn.parts for block in _part(part)]
    if padded and turn.calls and not any(block["type"] == "thinking" for block in content):
        content.insert(0, {"type": "thinking", "thinking": " ", "signature": ""})
    return content + [
        {"type": "tool_use", "id": call.id, "name": tool_name(call.name), "input": written_arguments(call)}
        for call in turn.calls
    ]


def _part(part: Text | Thinking) -> list[dict[str, Json]]:
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if part.signature is None:  # refused without one; it was not Anthropic's
        return []
    if part.redacted:
        return [{"type": "redacted_thinking", "data": part.signature}]
    return [{"type": "thinking", "thinking": part.text, "signature": part.signature}]


def _tool(spec: ToolSpec) -> dict[str, Json]:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _tools_of(turns: tuple[Turn, ...]) -> list[dict[str, Json]]:
    """Tools that the conversation speaks of: the format wants them declared even where none may be called."""
    names = {tool_name(call.name): None for turn in turns if not isinstance(turn, Said) for call in turn.calls}
    return [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in names]
