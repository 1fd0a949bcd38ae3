"""What is asked of a run, what comes of it, and what is heard of it meanwhile: plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import asdict, frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.protocol.base import Json

Status: TypeAlias = Literal["ok", "schema_mismatch", "budget_exceeded", "timeout", "cancelled", "crashed", "refused"]


@frozen
class Room:
    """What whoever asks for a run has left of a budget of their own, in tokens and USD micros. Null: they have no limit."""

    tokens: int | None = None
    cost_micros: int | None = None


@frozen
class RunRequest:
    """Run the agent with this full hash on `input`, for the files of `workspace`. `run_id` names its folder in `runs`.
    The run and all below it use no more than `room`.
    """

    hash: str
    input: Json
    workspace: Path
    run_id: str
    room: Room = Room()


@frozen
class RunUsage:
    """What a run and all runs below it used. `tokens_in` and `tokens_out` are what was charged, which is the upper bound
    where a provider did not say what it used.
    """

    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    wall_ms: int = 0


@frozen
class RunError:
    """`kind` is one word, that of a LymaError where there was one; `message` is a sentence."""

    kind: str
    message: str


@frozen
class Change:
    """A file as an agent would have it. `base` is the SHA-256 of the bytes it was made from, null for a new file."""

    path: str
    base: str | None
    content: bytes


@frozen
class RunResult:
    """`output` is null unless `status` is `ok`. Nothing of `changes` is applied; `patch` shows them, null where there are none."""

    run_id: str
    hash: str
    status: Status
    output: Json
    error: RunError | None
    usage: RunUsage
    patch: Path | None
    transcript: Path
    changes: tuple[Change, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As result.json has it. Paths are relative to Lyma's home; `changes` are only named."""
        return {
            "run_id": self.run_id,
            "hash": self.hash,
            "status": self.status,
            "output": self.output,
            "error": asdict(self.error) if self.error else None,
            "usage": asdict(self.usage),
            "patch": f"runs/{self.run_id}/{self.patch.name}" if self.patch else None,
            "transcript": f"runs/{self.run_id}/{self.transcript.name}",
            "changes": [change.path for change in self.changes],
        }


EventKind: TypeAlias = Literal["started", "model", "tool", "progress", "ended"]


@frozen
class RunEvent:
    """`path` are the names of the runs from the root to this one. `text` is for people: one line, redacted.

    `model`: a model call begins. `tool`: the model asked for a tool. `progress`: the agent said something. `ended`: `text`
    begins with the status.
    """

    run_id: str
    path: tuple[str, ...]
    kind: EventKind
    text: str
    hash: str = ""


@frozen
class UnderWay:
    """A run that has not ended; `path` as in its events."""

    run_id: str
    hash: str
    path: tuple[str, ...]


OnEvent: TypeAlias = "Callable[[RunEvent], None]"
