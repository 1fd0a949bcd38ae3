"""How a run ended: from whatever was raised to one status and one sentence. Pure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.errors import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRequired,
    ConfigError,
    EditConflict,
    HashMismatch,
    LymaError,
    MaskUnavailable,
    SandboxUnavailable,
    UsageError,
    refusal_of,
)
from lyma_server.factory.asking import CostUnbounded
from lyma_server.factory.budget import Exhausted
from lyma_server.factory.changes import Forbidden
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.conversation import Misbehaved
from lyma_server.factory.dialogue import ChildGone, ModelRefused, SchemaMismatch
from lyma_server.factory.outcome import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.factory.outcome import Status
    from lyma_server.protocol.base import Json


@frozen
class Ending:
    """`output` is null unless the status is `ok`, `error` null only then."""

    status: Status
    output: Json = None
    error: RunError | None = None


REFUSALS: Final = (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRequired,
    ConfigError,
    CostUnbounded,
    EditConflict,
    HashMismatch,
    MaskUnavailable,
    SandboxUnavailable,
    UsageError,
)

LIMITS: Final[Mapping[str, str]] = {
    "turns": "budget.max_turns",
    "tool_calls": "budget.max_tool_calls",
    "tokens": "budget.max_tokens",
    "cost_micros": "budget.max_cost_micros",
    "cpu_s": "budget.cpu_s",
    "scratch_mb": "budget.scratch_mb",
    "files_read": "files.max_files",
    "bytes_read": "files.max_read_bytes",
    "bytes_written": "files.max_write_bytes",
    "bytes_output": "output.max_bytes",
    "runs": "delegate.max_runs",
    "running": "delegate.max_runs",
}
"""By what a budget counts, the setting in agent.toml."""


def ending_of(error: BaseException, name: str) -> Ending:
    """What an agent's run ended with, by what was raised. `name` is the agent's."""
    if isinstance(error, LymaError):
        return _ending("refused" if isinstance(error, REFUSALS) else "crashed", error.kind, error.message)
    if isinstance(error, Exhausted) and error.what != "wall_s":
        limit, whose = LIMITS[error.what], error.path[-1]
        detail = f" ({error.asked:,} asked for, {error.room:,} left)" if error.room else ""
        message = f"{name} needs more than {limit} of {whose} allows{detail}; raise that."
        return _ending("budget_exceeded", "budget", message)
    if (refusal := refusal_of(error)) is not None:
        return _ending("crashed", "internal_error", f"{name} could not be run to its end: {refusal}.")
    for kinds, status, kind, message in _ENDINGS:
        if isinstance(error, kinds):
            return _ending(status, kind, message.format(name=name, error=error))
    return _ending("crashed", "internal_error", f"{name} could not be run to its end; its transcript says more.")


_ENDINGS: Final[tuple[tuple[tuple[type[BaseException], ...], Status, str, str], ...]] = (
    ((asyncio.CancelledError,), "cancelled", "cancelled", "The run of {name} was cancelled."),
    ((TimeoutError, Exhausted), "timeout", "timeout", "{name} ran as long as it may; raise budget.wall_s."),
    ((SchemaMismatch,), "schema_mismatch", "schema_mismatch", "The output of {name} does not fit its schema: {error}."),
    ((Forbidden,), "refused", "forbidden", "{name} was ended: {error}."),
    ((ModelRefused,), "crashed", "refusal", "The model refused to do what {name} asks for."),
    ((ChildGone,), "crashed", "crashed", "{name} ended without a result ({error}); its transcript says more."),
    ((Misbehaved, ChannelFault), "crashed", "crashed", "{name} was ended: it sent {error}."),
)
"""What is raised beside LymaErrors: the status, the word for programs and the sentence for people."""


def _ending(status: Status, kind: str, message: str) -> Ending:
    return Ending(status, error=RunError(kind, message))
