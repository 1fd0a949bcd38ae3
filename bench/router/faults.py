"""The fault table: how many of 40 calls are answered while one of three deployments fails in one way, before any text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from bench.router.contest import Contender

CALLS = 40
PATIENCE_S = 1
"""How long a contender waits for the first content before it gives up on a deployment, in seconds."""


@frozen
class Fault:
    """What a deployment sends. `body` null: nothing at all, and the connection stays open; `refused`: there is none."""

    status: int = 200
    body: str | None = ""
    type: str = "application/json"
    refused: bool = False


def error(kind: str, message: str) -> str:
    return json.dumps({"error": {"type": kind, "code": kind, "message": message}})


SSE = "text/event-stream"
PAGE = "<!doctype html><title>Gateway</title><p>Welcome"
FAULTS = {
    "401": Fault(401, error("invalid_api_key", "Incorrect API key provided")),
    "402": Fault(402, error("insufficient_balance", "Insufficient Balance")),
    "429": Fault(429, error("rate_limit_exceeded", "Rate limit reached")),
    "500": Fault(500, error("server_error", "The server had an error")),
    "502 page": Fault(502, PAGE, "text/html"),
    "503": Fault(503, error("server_error", "Service unavailable")),
    "529": Fault(529, error("overloaded_error", "Overloaded")),
    "connection refused": Fault(refused=True),
    "no answer": Fault(body=None),
    "page with status 200": Fault(200, PAGE, "text/html"),
    "page in place of a stream": Fault(200, PAGE, SSE),
    "bad JSON": Fault(200, '{"id": "x", "choices": ['),
    "empty choices": Fault(200, '{"id": "x", "object": "chat.completion", "choices": []}'),
    "error with status 200": Fault(200, error("server_error", "The server had an error")),
    "error in the stream": Fault(200, f"data: {error('server_error', 'The server had an error')}\n\n", SSE),
    "end without an answer": Fault(200, 'data: {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}\n\n', SSE),
}


def path_of(name: str) -> str:
    return f"fault{list(FAULTS).index(name)}"


def table(contenders: dict[str, Contender], names: dict[str, str]) -> str:
    """Each contender in turn for each fault; a column for each."""
    able = {name: contender for name, contender in contenders.items() if any(map(is_fault, contender.kinds))}
    lines = [f"| answered of {CALLS} | {' | '.join(names[name] for name in able)} |", "|---|" + "---|" * len(able)]
    for fault in FAULTS:
        cells = (str(contender.answered(kind_of(fault), CALLS)) for contender in able.values())
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kind_of(fault: str) -> str:
    return f"fault: {fault}"


def is_fault(kind: str) -> bool:
    return kind.startswith("fault: ")
