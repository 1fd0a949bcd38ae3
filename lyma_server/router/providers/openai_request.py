"""A request in OpenAI's chat format, as each of its speakers wants it. Pure; knows no SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.router.chat import Origin
from lyma_server.router.conversation import Said, arrange, in_plain_words, tool_name, written_arguments

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import ToolResult, ToolSpec
    from lyma_server.router.conversation import Answered, Turn
    from lyma_server.router.providers.base import Call, Provider

# What DeepSeek and Kimi take for a thought where none is stored (an empty string counts as missing).
NO_THOUGHT = " "


@frozen
class Dialect:
    """How a speaker of the format differs. `reasoning`: it demands `reasoning_content` beside tool calls. `own_ids`: ids
    of calls look like `functions.NAME:N`, and the model is better for it. `required`: it knows `tool_choice: required`.
    """

    limit: str = "max_tokens"
    reasoning: bool = False
    own_ids: bool = False
    required: bool = True
    tools: bool = True


DIALECTS = {
    "openai": Dialect(limit="max_completion_tokens"),
    "deepseek": Dialect(reasoning=True),
    "kimi": Dialect(reasoning=True, own_ids=True, required=False),
    "embedded": Dialect(tools=False),
}
HOSTS = {
    "api.openai.com": "openai",
    "api.deepseek.com": "deepseek",
    "api.moonshot.ai": "kimi",
    "api.moonshot.cn": "kimi",
}


def dialect_of(provider: Provider) -> Dialect:
    """By where it is, whatever the user calls it; by its name where its place tells nothing."""
    if provider.api == "embedded":
        return DIALECTS["embedded"]
    for host, name in HOSTS.items():
        if provider.base_url and f"//{host}" in provider.base_url:
            return DIALECTS[name]
    return DIALECTS.get(provider.name, Dialect())


def thinks_unseen(provider: Provider, model: str) -> bool:
    """Whether the model may think for minutes without a word of it: OpenAI's do, and show nothing."""
    return dialect_of(provider) is DIALECTS["openai"] and not model.startswith(("gpt-3", "gpt-4"))


def build_body(call: Call) -> dict[str, Json]:
    """The JSON body of a streamed call. Parameters that the model is known to refuse are left out."""
    dialect = dialect_of(call.provider)
    request = call.request
    body: dict[str, Json] = {
        "model": call.model,
        "messages": build_messages(call, dialect),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools and dialect.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if request.tool_choice == "none" or (request.tool_choice == "required" and dialect.required):
            body["tool_choice"] = request.tool_choice
    limit = request.max_output_tokens or call.provider.settings.max_output_tokens
    if limit is not None:
        other = "max_tokens" if dialect.limit == "max_completion_tokens" else "max_completion_tokens"
        body[other if dialect.limit in call.without else dialect.limit] = limit
    return {name: value for name, value in body.items() if name not in call.without}


def build_messages(call: Call, dialect: Dialect) -> list[dict[str, Json]]:
    """The conversation, instructions first."""
    thinker = Origin(call.provider.name, call.model) if call.history != "plain" else None
    history = call.request.messages if dialect.tools else in_plain_words(call.request.messages)
    turns = arrange(history, thinker)
    ids = _own_ids(turns) if dialect.own_ids else {}
    messages: list[dict[str, Json]] = []
    if call.request.instructions.strip():
        messages.append({"role": "system", "content": call.request.instructions})
    padded = call.history == "padded"
    for turn in turns:
        if isinstance(turn, Said):
            messages += [_result(result, ids) for result in turn.results]
            if turn.texts:
                messages.append({"role": "user", "content": "\n\n".join(turn.texts)})
        else:
            wanted = padded or (dialect.reasoning and bool(turn.calls))
            messages.append(_answer(turn, ids, reasoning=wanted))
    return messages


def _answer(turn: Answered, ids: dict[str, str], *, reasoning: bool) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": ids.get(call.id, call.id),
                "type": "function",
                "function": {
                    "name": tool_name(call.name),
                    "arguments": json.dumps(written_arguments(call), ensure_ascii=False),
                },
            }
            for call in turn.calls
        ]
    if reasoning:
        message["reasoning_content"] = turn.thinking or NO_THOUGHT
    return message


def _result(result: ToolResult, ids: dict[str, str]) -> dict[str, Json]:
    text = f"Error: {result.text}" if result.is_error else result.text
    return {"role": "tool", "tool_call_id": ids.get(result.call, result.call), "content": text}


def _own_ids(turns: tuple[Turn, ...]) -> dict[str, str]:
    calls = [call for turn in turns if not isinstance(turn, Said) for call in turn.calls]
    return {call.id: f"functions.{tool_name(call.name)}:{number}" for number, call in enumerate(calls)}


def _tool(spec: ToolSpec) -> dict[str, Json]:
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": spec.schema},
    }
