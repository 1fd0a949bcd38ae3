"""A run that a person starts by themselves, not through the main agent: a turn like any, whose work is that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, frozen

from lyma_server.agent.calls import toolbox
from lyma_server.agent.runs import Report, RunStopped
from lyma_server.agent.tools.agents import describe
from lyma_server.errors import UsageError
from lyma_server.protocol.events import TurnStarted
from lyma_server.router.chat import Message, Text

if TYPE_CHECKING:
    from lyma_server.agent.ask import Ask
    from lyma_server.agent.runs import Wanted
    from lyma_server.agent.turn import Turn
    from lyma_server.protocol.events import StopReason
    from lyma_server.protocol.messages import AskResult

CALL = "run"
"""Stands for the id of the call that no model made."""


@define
class Doing:
    """The work of the turn, and what came of it."""

    wanted: Wanted
    report: Report | None = None

    async def work(self, ask: Ask) -> StopReason:
        """Run it, so that the session can be gone on with. Raises what stands against it."""
        ask.events.emit(TurnStarted(prompt=f"Run the agent {self.wanted.hash}"))
        if ask.subagents is None:
            raise UsageError("Agents do not run here.")
        try:
            self.report = await ask.subagents().run(self.wanted, toolbox(ask, CALL))
        except RunStopped as stopped:
            self.report = Report("", stopped.result)
            raise
        ask.say(Message("user", (Text(f"I have run an agent. {describe(self.report)}"),)))
        return "cancelled" if self.report.result.status == "cancelled" else "end_turn"


@frozen
class RunTurn:
    """A run under way."""

    turn: Turn
    _doing: Doing

    async def report(self) -> tuple[AskResult, Report | None]:
        """Wait for the end: the turn's result, and the run's report unless the turn was stopped before it had one.

        Raises what stood against the run, always after `turn.completed`.
        """
        result = await self.turn.result()
        return result, self._doing.report
