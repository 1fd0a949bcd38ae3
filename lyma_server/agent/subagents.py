"""Agents as a turn works with them: drafted into the workspace, compiled from it, and run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from lyma_server.agent.approvals import Desk, admit
from lyma_server.agent.bounds import readable_file
from lyma_server.agent.ports import FileMissing
from lyma_server.agent.tools.changing import FileEdit, make_edit
from lyma_server.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.runs import Report, RunsPort, Wanted
    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.factory.compile import Examined
    from lyma_server.factory.draft import Draft
    from lyma_server.factory.external import External
    from lyma_server.factory.factory import Factory, Standing
    from lyma_server.factory.outcome import RunEvent

SPEC_FILE = "agent.toml"
AGENTS = Path(".lyma") / "agents"


@frozen
class Subagents:
    """What makes and runs agents, of one home. `find_runs` gives what runs them, when the first is run."""

    factory: Factory
    find_runs: Callable[[], RunsPort]
    external: External | None = None

    async def draft(self, task: str, name: str | None, box: Toolbox) -> Draft:
        """Let a model draft an agent, and write it as an edit of the workspace: shown, asked about and undone like any.

        Raises SpecInvalid, UsageError, ToolError, EditConflict and what the model call raises.
        """
        from lyma_server.factory.draft import compose

        if self.external is not None:
            draft = await (await self._admitted(self.external, box)).compose(task, box.bounds.root, _unheard, name)
        elif box.ask_model is not None:
            draft = await compose(task, box.ask_model, self.factory.ceiling, box.bounds.root, name)
        else:
            raise ToolError("There is no model to draft with.")
        await make_edit(FileEdit(draft.path, None, draft.text), box)
        return draft

    async def compile(self, named: str, box: Toolbox) -> tuple[Path, Examined]:
        """Compile the agent that is named by its name or by a path in the workspace, as the editor shows it."""
        path = spec_path(named, box.bounds.root)
        readable_file(str(path), box.bounds)
        try:
            text = (await box.workspace.read(path)).text
        except FileMissing:
            raise UsageError(f"There is no agent {named[:100]!r}: {path} is not there.") from None
        written = text.encode("utf-8", "replace")
        if self.external is not None:
            external = await self._admitted(self.external, box)
            return path, await external.compile(written, box.bounds.root, _unheard)
        return path, await asyncio.to_thread(self.factory.compile, path.parent, text=written)

    async def _admitted(self, external: External, box: Toolbox) -> External:
        """The external factory, within the budget of the turn. The person is asked for it, as it is now, if they have not
        approved it. Raises as `admit`.
        """
        from lyma_server.agent.runs import usage_of

        bundle = await asyncio.to_thread(external.prepare)
        await admit(Desk(self.factory, box.bounds.root, box.person, box.emit), bundle.hash)
        return evolve(external, room=box.room() or external.room, charge=lambda used: box.charge(usage_of(used)))

    def standing(self, hash_: str, workspace: Path) -> Standing:
        """How a compiled agent stands in a workspace."""
        return self.factory.standing(hash_, workspace)

    async def run(self, wanted: Wanted, box: Toolbox) -> Report:
        """Run an approved agent; a person is asked for an approval that is not there. Raises as `run_agent`."""
        from lyma_server.agent.runs import run_agent

        return await run_agent(wanted, self.factory, self.find_runs(), box)


def _unheard(_event: RunEvent) -> None:
    """What the external factory says while it works is in its transcript."""


def spec_path(named: str, root: Path) -> Path:
    """The agent.toml that is meant by a name, a folder or a file. Raises UsageError."""
    if "\0" in named or not named.strip():
        raise UsageError("Name an agent: by its name, its folder or its agent.toml.")
    if "/" not in named and named != SPEC_FILE:
        return root / AGENTS / named / SPEC_FILE
    path = root / named
    return path if path.name == SPEC_FILE else path / SPEC_FILE
