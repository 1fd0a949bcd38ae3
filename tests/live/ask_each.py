"""Ask each real provider that is configured here one small question with a tool, and say what it did and what it cost.

`make live`. It uses the configuration and the keys of whoever runs it, one provider at a time, and costs about a cent for
each. A provider without a key is left out, so that without keys nothing is sent. Exit code 1 where one did not do its job.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING

import attrs

from lyma_server.compose import build_core
from lyma_server.errors import LymaError
from lyma_server.router.chat import (
    ChatRequest,
    Completed,
    Message,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    ToolSpec,
)

if TYPE_CHECKING:
    from lyma_server.compose import Core
    from lyma_server.protocol.events import Attempt

SUM = ToolSpec(
    "add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
QUESTION = "Use the tool to add 1234 and 4321, then tell me the sum in one short sentence."
ANSWER = "5555"
LONGEST_ANSWER = 1000
"""Tokens; at the dearest price known that is a little over a cent."""
MOST_CALLS = 3
VISIBLE = (TextDelta, ThinkingDelta, ToolCallDelta)
MICROS = 1_000_000


@attrs.define
class Record:
    """What one provider did."""

    text: str = ""
    tools: int = 0
    tokens: int = 0
    cost_micros: int | None = 0
    first_ms: float | None = None
    attempts: list[Attempt] = attrs.field(factory=list)

    def count(self, answer: Completed) -> None:
        self.tokens += answer.usage.input_tokens + answer.usage.output_tokens
        cost = answer.usage.cost_micros
        self.cost_micros = None if cost is None or self.cost_micros is None else self.cost_micros + cost


async def ask(core: Core, provider: str) -> Record:
    """The question, the tool's result, the answer. Raises LymaError."""
    record = Record()
    messages = [Message("user", (Text(QUESTION),))]
    for _ in range(MOST_CALLS):
        answer = await _call(core, provider, tuple(messages), record)
        record.count(answer)
        calls = [block for block in answer.message.blocks if isinstance(block, ToolCall)]
        record.text = "".join(block.text for block in answer.message.blocks if isinstance(block, Text))
        if not calls:
            break
        record.tools += len(calls)
        messages += [answer.message, Message("user", tuple(map(_result, calls)))]
    return record


async def _call(core: Core, provider: str, messages: tuple[Message, ...], record: Record) -> Completed:
    request = ChatRequest(
        "Be brief.", messages, "live", tools=(SUM,), max_output_tokens=LONGEST_ANSWER, provider=provider
    )
    began = time.perf_counter()
    answer: Completed | None = None
    async for event in core.router.stream(request, record.attempts.append):
        if record.first_ms is None and isinstance(event, VISIBLE):
            record.first_ms = (time.perf_counter() - began) * 1000
        if isinstance(event, Completed):
            answer = event
    assert answer is not None
    return answer


def _result(call: ToolCall) -> ToolResult:
    arguments = call.arguments or {}
    a, b = arguments.get("a"), arguments.get("b")
    if isinstance(a, int) and isinstance(b, int):
        return ToolResult(call.id, str(a + b))
    return ToolResult(call.id, "a and b must be whole numbers.", is_error=True)


def describe(provider: str, record: Record, took_s: float) -> tuple[bool, str]:
    """Whether it did its job, and what it did in one line."""
    last = record.attempts[-1]
    held = ANSWER in record.text.replace(",", "").replace(" ", "") and record.tools > 0
    cost = "at an unknown price" if record.cost_micros is None else f"${record.cost_micros / MICROS:.4f}"
    first = "nothing to see" if record.first_ms is None else f"the first word after {record.first_ms:.0f} ms"
    route = ", ".join(attempt.class_ for attempt in record.attempts)
    who = f"{provider} {last.model}{f' key {last.key}' if last.key else ''}"
    what = "used the tool and gave the sum" if held else f"called {record.tools} tools and said {record.text[:80]!r}"
    return held, f"{who}: {what} in {took_s:.1f} s, {first}, {record.tokens} tokens, {cost} (attempts: {route})"


async def main() -> int:
    core = build_core(os.environ)
    asked = failed = 0
    try:
        for name in core.loaded.settings.order:
            if not any(key.secret is not None for key in core.keys[name]):
                continue
            asked += 1
            began = time.perf_counter()
            try:
                held, line = describe(name, await ask(core, name), time.perf_counter() - began)
            except LymaError as error:
                held, line = False, error.message
            failed += not held
            print(f"{'ok ' if held else 'bad'}  {core.redactor.redact(line)}", flush=True)
    finally:
        await core.close()
    if not asked:
        print("No provider with a key is configured, so nothing was asked; `lyma setup` stores one.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
