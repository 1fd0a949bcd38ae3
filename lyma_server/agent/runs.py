"""A run of a compiled agent as its person sees it: approved first, told while it works, its changes made as edits are."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from attrs import evolve, frozen

from lyma_server.agent.aftermath import told_after
from lyma_server.agent.approvals import Desk, admit
from lyma_server.agent.bounds import writable_file
from lyma_server.agent.encoding import decoded, encoded
from lyma_server.agent.identifiers import new_identifier
from lyma_server.agent.ports import FileMissing, Question
from lyma_server.agent.run_items import RunItems
from lyma_server.agent.tools.changing import FileEdit, make_edit, refuse_mark
from lyma_server.errors import EditConflict, ToolError
from lyma_server.protocol.events import Usage

if TYPE_CHECKING:
    from lyma_server.agent.ports import FileText
    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.factory.factory import Factory
    from lyma_server.factory.outcome import Change, OnEvent, RunRequest, RunResult, RunUsage, UnderWay
    from lyma_server.protocol.base import Json

GRACE_S: Final = 1.2
"""How long a run that is stopped may take to say how it ended."""

Applying: TypeAlias = Literal["as_set", "ask", "yes", "no"]
"""What becomes of a run's changes: made as the settings say of edits, after one question about all of them, at once, or not."""


class RunsPort(Protocol):
    """What runs agents."""

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunResult:
        """Run one to its result. Whoever cancels the task cancels the run."""

    async def stop(self, run_id: str) -> None:
        """Cancel a run. Raises UsageError where there is none of that name."""

    def under_way(self) -> tuple[UnderWay, ...]:
        """The runs that have not ended."""


@frozen
class Wanted:
    """What to run: a full hash and its input."""

    hash: str
    input: Json
    applying: Applying = "as_set"


@frozen
class Left:
    """A change that was not made, and why."""

    path: str
    reason: str


@frozen
class Report:
    """How a run ended, the files that it changed in the workspace, and those that it did not."""

    name: str
    result: RunResult
    made: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()


async def run_agent(wanted: Wanted, factory: Factory, runs: RunsPort, box: Toolbox) -> Report:
    """Run an agent that a person has approved, or now approves. Raises what `admit` does, and nothing for how it ended."""
    from lyma_server.factory.outcome import Room, RunRequest

    workspace = box.bounds.root
    bundle = await admit(Desk(factory, workspace, box.person, box.emit), wanted.hash)
    run_id = new_identifier()
    items = RunItems(box.emit, box.new_item)
    items.begin(run_id, wanted.hash, bundle.name)
    try:
        request = RunRequest(wanted.hash, wanted.input, workspace, run_id, box.room() or Room())
        result = await _until_ended(runs, request, items)
        items.end(run_id, result)
    except RunStopped as stopped:
        box.charge(usage_of(stopped.result.usage))
        raise
    finally:
        items.close()
    box.charge(usage_of(result.usage))
    made, left = await _make_changes(wanted, result.changes, box)
    return Report(bundle.name, result, made, left)


class RunStopped(asyncio.CancelledError):
    """The work was cancelled, and the run said how it ended."""

    def __init__(self, result: RunResult) -> None:
        super().__init__()
        self.result = result


async def _until_ended(runs: RunsPort, request: RunRequest, items: RunItems) -> RunResult:
    """Run in a task of its own, so that a stop of this one stops the run and lets it say how it ended."""
    running = asyncio.ensure_future(runs.run(request, items.hear))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.cancel()
        await asyncio.wait({running}, timeout=GRACE_S)
        if running.done() and not running.cancelled() and running.exception() is None:
            items.end(request.run_id, running.result())
            raise RunStopped(running.result()) from None
        raise


def usage_of(used: RunUsage) -> Usage:
    """What a run used, as a turn counts it."""
    return Usage(input_tokens=used.tokens_in, output_tokens=used.tokens_out, cost_micros=used.cost_micros)


async def _make_changes(
    wanted: Wanted, changes: tuple[Change, ...], box: Toolbox
) -> tuple[tuple[str, ...], tuple[Left, ...]]:
    """Make the changes in the workspace, each or none; the names of both kinds."""
    if not changes:
        return (), ()
    made: list[str] = []
    left: list[Left] = []
    edits: list[tuple[Change, FileEdit]] = []
    for change in changes:
        try:
            edits.append((change, await _edit_of(change, box)))
        except (ToolError, EditConflict) as problem:
            left.append(Left(change.path, problem.message))
    refusal = await _refusal(wanted.applying, [edit for _, edit in edits], box)
    settings = evolve(box.settings, confirm="never") if wanted.applying in {"ask", "yes"} else box.settings
    async with told_after("The agent's changes", box):
        for change, edit in edits:
            reason = refusal or await _make(edit, evolve(box, settings=settings))
            if reason is None:
                made.append(change.path)
            else:
                left.append(Left(change.path, reason))
    return tuple(made), tuple(left)


async def _make(edit: FileEdit, box: Toolbox) -> str | None:
    """Why an edit could not be made; null where it was."""
    try:
        await make_edit(edit, box)
    except (ToolError, EditConflict) as problem:
        return problem.message
    return None


async def _refusal(applying: Applying, edits: list[FileEdit], box: Toolbox) -> str | None:
    """Why none of the changes is to be made; null where they are."""
    if applying == "no":
        return "Changes were not to be made."
    if applying != "ask" or not edits:
        return None
    diff = "".join(edit.diff(box) for edit in edits)
    agreed = await box.person.confirm(Question("edit", "Make these changes?", box.redactor.redact(diff)))
    if agreed is None:
        return "Nobody answered; it takes a yes."
    return None if agreed else "The person did not agree to it."


async def _edit_of(change: Change, box: Toolbox) -> FileEdit:
    """The change as an edit of the file as it is now. Raises EditConflict where it was made from another state of it,
    ToolError where it may not be made at all.
    """
    path = writable_file(change.path, box.bounds)
    text = decoded(change.content)
    if text is None:
        raise ToolError(f"The new {change.path} is not a text in UTF-8 or UTF-16; it is in the folder of the run only.")
    refuse_mark(box, text[0])
    before: FileText | None = None
    with suppress(FileMissing):
        before = await box.workspace.read(path)
    if _state_of(before) != (change.base and change.base.removeprefix("sha256:")):
        raise EditConflict(f"{change.path} has changed since the agent read it.")
    return FileEdit(path, before, text[0])


def _state_of(before: FileText | None) -> str | None:
    return None if before is None else hashlib.sha256(encoded(before.text, before.encoding)).hexdigest()
