"""What all runs of one root share, and what the runs of one process stand on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from lyma_server.factory.versions import MOST_RUNNING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from lyma_server.config.paths import Home
    from lyma_server.factory.asking import Tally
    from lyma_server.factory.budget import Budget
    from lyma_server.factory.factory import Factory
    from lyma_server.factory.model_port import Model
    from lyma_server.factory.outcome import OnEvent
    from lyma_server.factory.running import Run
    from lyma_server.factory.sandbox_port import SandboxPort
    from lyma_server.factory.staging import Reach
    from lyma_server.secret import Redactor


@frozen
class Ground:
    """What every run stands on. `prove_mask` raises MaskUnavailable unless Lyma's home is out of reach of all commands in
    a workspace: who could write there could approve. `keep_days` is how long the folders of runs are kept.
    """

    factory: Factory
    model: Model
    sandbox: SandboxPort
    home: Home
    redactor: Redactor
    prove_mask: Callable[[Path], Awaitable[None]]
    keep_days: int = 90


@define(eq=False)
class Tree:
    """The runs of one root. `claims` are the files that are changed, and by which run; `under_way` all runs of the process."""

    workspace: Path
    on_event: OnEvent
    under_way: dict[str, Run]
    claims: dict[str, str] = field(factory=dict)
    turns: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(MOST_RUNNING))
    begun: int = 0

    def next_number(self) -> int:
        """The how-manieth run below the root begins."""
        self.begun += 1
        return self.begun


@frozen
class Above:
    """What a run is bound by that another one has started. `hashes` are those of all runs above."""

    path: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    budget: Budget | None = None
    tally: Tally | None = None
    reach: Reach | None = None
    kernel: dict[str, int] | None = None
    may_run: tuple[str, ...] | None = None
