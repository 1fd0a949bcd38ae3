"""The two wire formats as the stub provider writes them: by the path that was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stub_provider import Reply, Request

OPENAI_FINISH = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}


def listing(models: Sequence[str]) -> dict[str, Any]:
    """The models, with the fields of both formats."""
    rows = [{"id": name, "object": "model", "type": "model", "created": 1, "owned_by": "stub"} for name in models]
    for row in rows:
        row |= {"display_name": row["id"], "created_at": "2026-01-01T00:00:00Z"}
    ends = {"first_id": models[0] if models else None, "last_id": models[-1] if models else None}
    return {"object": "list", "data": rows, "has_more": False, **ends}


def whole(request: Request, reply: Reply) -> dict[str, Any]:
    """The whole answer at once."""
    return _whole_anthropic(request, reply) if _is_anthropic(request) else _whole_openai(request, reply)


def stream(request: Request, reply: Reply) -> list[str]:
    """The server-sent events, a string each."""
    return _stream_anthropic(request, reply) if _is_anthropic(request) else _stream_openai(request, reply)


def _is_anthropic(request: Request) -> bool:
    return request.path.split("?")[0].endswith("/messages")


def _call_id(number: int) -> str:
    return f"call_{number + 1}"


def _openai_usage(reply: Reply) -> dict[str, int]:
    total = reply.input_tokens + reply.output_tokens
    return {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens, "total_tokens": total}


def _openai_finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else OPENAI_FINISH[reply.finish]


def _openai_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": number, "id": _call_id(number), "type": "function", "function": function}


def _whole_openai(request: Request, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None}
    if reply.calls:
        message["tool_calls"] = [_openai_call(number, *call) for number, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _openai_finish(reply)}
    return {
        "id": "stub-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.body.get("model"),
        "choices": [choice],
        "usage": _openai_usage(reply),
    }


def _stream_openai(request: Request, reply: Reply) -> list[str]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in reply.thinking]
    deltas += [{"content": text} for text in reply.text]
    for number, (name, arguments) in enumerate(reply.calls):
        deltas.append({"tool_calls": [_openai_call(number, name, "")]})
        half = len(arguments) // 2
        deltas += [
            {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
            for piece in (arguments[:half], arguments[half:])
            if piece
        ]
    chunks = [_openai_chunk(request, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if reply.end == "error":
        return [*chunks, _data({"error": reply.error})]
    if reply.end != "finish":
        return chunks
    chunks.append(_openai_chunk(request, [{"index": 0, "delta": {}, "finish_reason": _openai_finish(reply)}]))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        chunks.append(_openai_chunk(request, [], usage=_openai_usage(reply)))
    return [*chunks, "data: [DONE]\n\n"]


def _openai_chunk(request: Request, choices: list[dict[str, Any]], **more: Any) -> str:
    head = {"id": "stub-1", "object": "chat.completion.chunk", "created": 1, "model": request.body.get("model")}
    return _data({**head, "choices": choices, **more})


def _data(value: Any) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _anthropic_head(request: Request, reply: Reply, output_tokens: int) -> dict[str, Any]:
    return {
        "id": "msg_stub1",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": output_tokens},
    }


def _anthropic_finish(reply: Reply) -> str:
    return "tool_use" if reply.calls else reply.finish


def _whole_anthropic(request: Request, reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": "".join(reply.text)}] if reply.text else []
    for number, (name, arguments) in enumerate(reply.calls):
        content.append(
            {"type": "tool_use", "id": _call_id(number), "name": name, "input": json.loads(arguments or "{}")}
        )
    head = _anthropic_head(request, reply, reply.output_tokens)
    return {**head, "content": content, "stop_reason": _anthropic_finish(reply)}


def _anthropic_blocks(reply: Reply) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each block's opening and its deltas."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if reply.thinking:
        deltas = [{"type": "thinking_delta", "thinking": text} for text in reply.thinking]
        signature = {"type": "signature_delta", "signature": "c3R1Yg=="}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]))
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in reply.text]))
    for number, (name, arguments) in enumerate(reply.calls):
        half = len(arguments) // 2
        pieces = [piece for piece in (arguments[:half], arguments[half:]) if piece]
        opening = {"type": "tool_use", "id": _call_id(number), "name": name, "input": {}}
        blocks.append((opening, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]))
    return blocks


def _stream_anthropic(request: Request, reply: Reply) -> list[str]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": _anthropic_head(request, reply, 1)}]
    events.append({"type": "ping"})
    blocks = _anthropic_blocks(reply)
    for index, (opening, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        if reply.end == "finish" or index < len(blocks) - 1:
            events.append({"type": "content_block_stop", "index": index})
    if reply.end == "error":
        events.append({"type": "error", "error": reply.error})
    elif reply.end == "finish":
        finish = {"stop_reason": _anthropic_finish(reply), "stop_sequence": None}
        events.append({"type": "message_delta", "delta": finish, "usage": {"output_tokens": reply.output_tokens}})
        events.append({"type": "message_stop"})
    return [f"event: {event['type']}\n{_data(event)}" for event in events]
