"""Plays a task through the real agent, with the real tools, in a throwaway copy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from bench.tasks.facts import NOT_DONE
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.errors import LymaError
from lyma_server.protocol.events import ItemCompleted
from lyma_server.protocol.items import ToolCallItem
from lyma_server.protocol.messages import AskBudget, AskParams
from lyma_server.terminal.scripted import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from bench.tasks.catalogue import Step, Task
    from lyma_server.agent.ports import ApprovalRequest, Question
    from lyma_server.compose import Core
    from lyma_server.factory.approval import Channel
    from lyma_server.protocol.events import Event

CHECK_S = 120


class Nobody:
    """There is no person, so that whatever needs one is refused."""

    channel: Channel = "terminal"

    async def confirm(self, question: Question) -> bool | None:
        del question

    async def approve(self, request: ApprovalRequest) -> None:
        del request


@define
class ScriptedModel:
    """Says what the script of the current task says. `surprises` are the answers of tools that the script did not expect."""

    steps: tuple[Step, ...] = ()
    surprises: list[str] = field(factory=list)

    def play(self, task: Task) -> None:
        """From now on by this task's script."""
        self.steps, self.surprises = task.steps, []

    def answer(self, _key: str, messages: list[dict[str, Any]]) -> Reply:
        """The step after as many as the conversation holds."""
        said = sum(message["role"] == "assistant" for message in messages)
        if said >= len(self.steps):
            self.surprises.append("the model was asked once more after its last word")
            return Reply("There is nothing left to say.")
        step = self.steps[said]
        told = "\n".join(str(message["content"]) for message in _answers(messages))
        if step.told not in told:
            self.surprises.append(f"step {said + 1} expects {step.told!r}, but was told {told!r}")
        return step.reply


def _answers(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the tools answered since the model spoke last."""
    last = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return [message for message in messages[last + 1 :] if message["role"] == "tool"]


@frozen
class Outcome:
    """What became of a task; `missing` is empty where it is done. `cost_micros` is null where a price is unknown."""

    task: str
    missing: str
    turns: int
    tool_calls: int
    seconds: float
    cost_micros: int | None = 0

    @property
    def passed(self) -> bool:
        return not self.missing


@frozen
class Manner:
    """Of playing: who is asked, null for the order of the settings, what a task may use, and whether the untouched
    repository is checked first.
    """

    provider: str | None = None
    budget: AskBudget | None = None
    control: bool = True


async def perform(core: Core, task: Task, place: Path, manner: Manner) -> Outcome:
    """Ask, wait, and check what came of it. `place` is a folder that is made. Raises LymaError where nothing could be asked."""
    work = task.lay_out(place)
    calls: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event.body, ItemCompleted) and isinstance(event.body.item, ToolCallItem):
            calls.append(event.body.item.name)

    try:
        if manner.control and not await missing(core, place):
            return Outcome(task.name, "the check passes on the untouched repository", 0, 0, 0)
        began = time.perf_counter()
        params = AskParams(prompt=task.request, provider=manner.provider, budget=manner.budget)
        turn = core.start(params, DiskWorkspace(work), Nobody(), listen)
        result = await turn.result()
        seconds = time.perf_counter() - began
        await _end_commands(core, result.session)
        lack = await missing(core, place)
    finally:
        await _end_commands(core, _checks_of(place))
    turns = sum(attempt.class_ == "ok" for attempt in result.route)
    return Outcome(task.name, lack, turns, len(calls), seconds, result.usage.cost_micros)


async def missing(core: Core, place: Path) -> str:
    """What the check finds missing, empty where all is done; confined, because it runs what a model wrote."""
    if core.commands is None:
        raise LymaError("Commands run on Linux only, and so do the tasks.")
    commands = core.commands.of(_checks_of(place), place)
    command = await commands.run("exec python3 -B facts.py", timeout_s=CHECK_S)
    said = command.output.text().strip()
    if command.status not in {0, NOT_DONE}:
        raise LymaError(f"The check of {place.name} itself went wrong: {said}")
    return said if command.status == NOT_DONE else ""


def _checks_of(place: Path) -> str:
    return f"check of {place.name}"


async def _end_commands(core: Core, session: str) -> None:
    if core.commands is not None:
        await core.commands.end(session)
