"""Runs compiled agents: what was approved, by its hash, in the sandbox, within its budget, to exactly one result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.config.paths import Home
    from lyma_server.factory.factory import Factory
    from lyma_server.factory.model_port import Model
    from lyma_server.factory.outcome import OnEvent, RunRequest, RunResult
    from lyma_server.factory.sandbox_port import SandboxPort
    from lyma_server.secret import Redactor


@define(eq=False)
class Runs:
    """The runs of one process. `proven` tells whether Lyma's home is hidden from all commands; without it nothing runs."""

    factory: Factory
    model: Model
    sandbox: SandboxPort
    home: Home
    redactor: Redactor
    proven: Callable[[], bool]

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunResult:
        """Run an agent to its one result. To cancel, cancel the task or call `stop`: the status is `cancelled` then."""
        raise NotImplementedError

    async def stop(self, run_id: str) -> None:
        """Cancel a run and wait until it has ended. Raises UsageError where none of that name is under way."""
        raise NotImplementedError

    def list(self) -> tuple[str, ...]:
        """The names of the runs that are under way, those below others included."""
        raise NotImplementedError
