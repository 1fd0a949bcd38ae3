"""A stand-in for what runs agents: it plays events and gives a result, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from attrs import define, field

from lyma_server.factory.canonical import digest
from lyma_server.factory.outcome import Change, RunError, RunEvent, RunRequest, RunResult, RunUsage, UnderWay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def change(path: str, before: bytes | None, after: bytes) -> Change:
    return Change(path, None if before is None else digest(before), after)


@define
class FakeRuns:
    """`hang` lets a run wait until it is cancelled; `gate` is asked first, as the real one does."""

    home: Path
    output: Any = None
    status: str = "ok"
    error: RunError | None = None
    changes: tuple[Change, ...] = ()
    events: tuple[tuple[str, tuple[str, ...], str, str], ...] = ()
    hang: bool = False
    gate: Callable[[RunRequest], None] | None = None
    requests: list[RunRequest] = field(factory=list)
    stopped: list[str] = field(factory=list)
    waiting: dict[str, asyncio.Future[None]] = field(factory=dict)

    async def run(self, request: RunRequest, on_event: Callable[[RunEvent], None]) -> RunResult:
        self.requests.append(request)
        if self.gate is not None:
            self.gate(request)
        for run_id, path, kind, text in self.events:
            on_event(RunEvent(run_id or request.run_id, path, kind, text))
        status = self.status
        if self.hang:
            self.waiting[request.run_id] = asyncio.get_running_loop().create_future()
            try:
                await self.waiting[request.run_id]
            except asyncio.CancelledError:
                status = "cancelled"
            self.waiting.pop(request.run_id)
        return self._result(request, status)

    def _result(self, request: RunRequest, status: str) -> RunResult:
        folder = self.home / "runs" / request.run_id
        return RunResult(
            run_id=request.run_id,
            hash=request.hash,
            status=status,
            output=self.output if status == "ok" else None,
            error=self.error,
            usage=RunUsage(turns=3, tokens_in=100, tokens_out=20, cost_micros=7, wall_ms=5),
            patch=folder / "patch.diff" if self.changes else None,
            transcript=folder / "transcript.jsonl",
            changes=self.changes if status == "ok" else (),
        )

    async def until_it_hangs(self) -> None:
        """Wait until a run hangs."""
        async with asyncio.timeout(10):
            while not self.waiting:
                await asyncio.sleep(0)

    async def stop(self, run_id: str) -> None:
        self.stopped.append(run_id)
        self.waiting[run_id].cancel()

    def under_way(self) -> tuple[UnderWay, ...]:
        hashes = {request.run_id: request.hash for request in self.requests}
        return tuple(UnderWay(name, hashes[name], ("agent",)) for name in self.waiting)
