"""What is said beside the answer: one line for an event that a person may want to know of."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import TYPE_CHECKING

from lyma_server.protocol.events import ItemCompleted, ItemDiscarded, Notice, Route
from lyma_server.protocol.items import CommandOutputItem, EditItem, RunItem, ToolCallItem, ToolResultItem
from lyma_server.terminal.plain import plain_line

if TYPE_CHECKING:
    from lyma_server.protocol.events import StopReason, Usage
    from lyma_server.protocol.messages import AskResult

NEXT_STEPS = {
    "rotate": "trying its next key",
    "fallback": "trying the next provider",
    "retry": "trying again",
    "shrink": "sending less",
    "repair": "mending the request",
    "wait": "waiting",
}
STOPPED: dict[StopReason, str] = {
    "max_tokens": "The answer was cut at the longest that the model may give.",
    "max_steps": "Stopped: the turn took as many model calls as it may (agent.max_steps).",
    "budget": "Stopped: the budget is used up.",
    "refusal": "The model declined to answer.",
    "cancelled": "Cancelled.",
    "interrupted": "The answer broke off.",
}
MICROS = 1_000_000
FAILURE_LENGTH = 400
"""Characters; a refused command is told with its rule, part, reason and what to do instead."""


@singledispatch
def note(_body: object) -> str | None:
    """The line for an event's body or an item; None where nothing need be said."""
    return None


@note.register
def _(body: Route) -> str | None:
    if body.class_ in ("ok", "cancelled") or body.next == "fail":  # what it ends with says all that there is to say
        return None
    who = f"{body.provider} key {body.key}" if body.key else body.provider
    status = f" ({body.status})" if body.status else ""
    step = NEXT_STEPS.get(body.next)
    return f"{who}: {body.class_.replace('_', ' ')}{status}" + (f", {step}" if step else "")


@note.register
def _(body: ItemDiscarded) -> str:
    return f"what the model had begun to say is void ({body.reason})"


@note.register
def _(body: Notice) -> str:
    return body.text if body.level == "info" else f"warning: {body.text}"


@note.register
def _(body: ItemCompleted) -> str | None:
    return note(body.item)


@note.register
def _(item: ToolCallItem) -> str:
    return f"{item.name} {_arguments(item.arguments)}".rstrip()


@note.register
def _(item: ToolResultItem) -> str | None:
    return f"failed: {plain_line(item.text, FAILURE_LENGTH)}" if item.is_error else None


@note.register
def _(item: EditItem) -> str:
    lines = item.diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"{'changed' if item.applied else 'did not change'} {item.path} (+{added} -{removed})"


@note.register
def _(item: CommandOutputItem) -> str | None:
    return None if item.exit_status in (0, None) else f"exit status {item.exit_status}: {item.command}"


@note.register
def _(item: RunItem) -> str:
    return f"agent {item.name}: {item.status or 'running'}"


def summary(result: AskResult) -> str:
    """The last line: who answered, and what it took."""
    answered = next((attempt for attempt in reversed(result.route) if attempt.class_ == "ok"), None)
    parts = [f"{answered.provider} {answered.model}"] if answered else []
    parts.append(_tokens(result.usage))
    if result.usage.cost_micros is not None:
        parts.append(f"${result.usage.cost_micros / MICROS:.4f}")
    return ", ".join(parts)


def _tokens(usage: Usage) -> str:
    about = "about " if usage.estimated else ""
    return f"{about}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _arguments(arguments: dict[str, object]) -> str:
    """Short values as they are, long ones by their size; all but the first by name, or `ls, 1` would seem a command."""
    parts: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        short = len(text) <= 80 and "\n" not in text
        text = text if short else f"{len(text)} characters"
        parts.append(f"{name}: {text}" if parts or not short else text)
    return ", ".join(parts)
