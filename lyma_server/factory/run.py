"""Runs compiled agents: what was approved, by its hash, in the sandbox, within its budget, to exactly one result."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Final

from attrs import define, field

from lyma_server.errors import UsageError
from lyma_server.factory import trees
from lyma_server.factory.approval import RECORD_S
from lyma_server.factory.budget import asker_budget
from lyma_server.factory.outcome import Room, UnderWay
from lyma_server.factory.running import Run
from lyma_server.factory.transcript import DAY_S, Transcript, prune
from lyma_server.factory.tree import Above, Ground, Tree

if TYPE_CHECKING:
    from lyma_server.factory.outcome import OnEvent, RunRequest, RunResult

LARGEST_JUMP_S: Final = 3600

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


@define(eq=False)
class Runs:
    """The runs of one process."""

    ground: Ground
    _under_way: dict[str, Run] = field(factory=dict, init=False)
    _began: tuple[float, float] = field(factory=lambda: (time.time(), time.monotonic()), init=False)
    _pruned: bool = False

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunResult:
        """Run an agent to its one result, whatever happens to it; nothing is raised for how it ends.

        To cancel, cancel the task that waits here, or call `stop`: the result comes all the same, with the status
        `cancelled`. `on_event` must not block. Raises UsageError for a `run_id` that is taken or no plain name, LymaError
        where the run's folder cannot be made.
        """
        if not _RUN_ID.fullmatch(request.run_id):
            raise UsageError(f"{request.run_id[:80]!r} is no name for a run; use letters, digits, - and _.")
        transcript = Transcript(self.ground.home.runs / request.run_id, self.ground.redactor)
        tree = Tree(request.workspace, on_event, self._under_way)
        run = Run(self.ground, tree, request.run_id, request.hash, request.input, _above(request.room))
        task = run.begin(transcript)
        task.add_done_callback(self._prune)
        while True:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise  # the event loop itself ends
                run.cancel()
                waiting = asyncio.current_task()
                if waiting is not None:
                    waiting.uncancel()

    def _prune(self, _task: object) -> None:
        """After the first run of a process remove old ones, unless the clock jumped: then all of them may seem old."""
        wall, steady = self._began
        jumped = abs((time.time() - wall) - (time.monotonic() - steady)) > LARGEST_JUMP_S
        if not self._pruned and not jumped:
            self._pruned = True
            kept_s = self.ground.keep_days * DAY_S
            prune(self.ground.home.runs, time.time() - kept_s)
            trees.prune(self.ground.home.trees, time.time() - max(kept_s, RECORD_S))  # no approval holds longer

    async def stop(self, run_id: str) -> None:
        """Cancel a run and wait until it has ended. Raises UsageError where none of that name is under way."""
        run = self._under_way.get(run_id)
        if run is None or run.task is None:
            raise UsageError(f"No run named {run_id[:80]!r} is under way.")
        run.cancel()
        await asyncio.wait({run.task})

    async def close(self) -> None:
        """Cancel all runs and wait for their end."""
        runs = list(self._under_way.values())
        for run in runs:
            run.cancel()
        await asyncio.gather(*(run.task for run in runs if run.task is not None), return_exceptions=True)

    def list(self) -> tuple[str, ...]:
        """The names of the runs that are under way, those below others included."""
        return tuple(self._under_way)

    def under_way(self) -> tuple[UnderWay, ...]:
        """The same with what they run."""
        return tuple(UnderWay(name, run.hash, run.path) for name, run in self._under_way.items())


def _above(room: Room) -> Above:
    """Whoever asks is above the run in one respect: what it uses is set aside there, too."""
    return Above() if room == Room() else Above(budget=asker_budget(room.tokens, room.cost_micros))
