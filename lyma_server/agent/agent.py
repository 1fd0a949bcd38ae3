"""The main agent: it starts turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.agent import loop
from lyma_server.agent.ask import Ask
from lyma_server.agent.bounds import Bounds, real_path, user_homes, workspace_refusal
from lyma_server.agent.context import prompt_text
from lyma_server.agent.edits import EditBook
from lyma_server.agent.events import EventStream
from lyma_server.agent.identifiers import item_identifiers, new_identifier
from lyma_server.agent.limits import limits_of
from lyma_server.agent.tools.registry import AGENT_TOOLS, COMMAND_TOOLS, TOOLS
from lyma_server.agent.turn import Turn
from lyma_server.errors import UsageError
from lyma_server.protocol.events import Notice
from lyma_server.protocol.messages import AskParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.direct import RunTurn
    from lyma_server.agent.ports import ChatRouter, Listener, Person, Workspace
    from lyma_server.agent.runs import Wanted
    from lyma_server.agent.session import SessionStore
    from lyma_server.agent.sessionlog import SessionLog
    from lyma_server.agent.subagents import Subagents
    from lyma_server.agent.tools.base import Tool
    from lyma_server.agent.turn import Work
    from lyma_server.config.model import AgentSettings
    from lyma_server.executor.run import Commands
    from lyma_server.executor.sessions import CommandSessions
    from lyma_server.protocol.messages import AskBudget
    from lyma_server.secret import Redactor

TITLE_SOURCE = 4096
"""Characters of a prompt that are looked at for the title of its session."""


class Agent:
    """Holds what turns share. `home` is Lyma's own folder, which no tool may touch; `commands` null offers no commands."""

    def __init__(  # noqa: PLR0913, PLR0917 - what all turns share
        self,
        router: ChatRouter,
        sessions: SessionStore,
        settings: AgentSettings,
        redactor: Redactor,
        home: Path,
        commands: CommandSessions | None = None,
    ) -> None:
        self.router = router
        self.sessions = sessions
        self.settings = settings
        self.redactor = redactor
        self.home = real_path(home)
        self.commands = commands
        self.subagents: Callable[[], Subagents] | None = None

    def start(self, params: AskParams, workspace: Workspace, person: Person, listener: Listener) -> Turn:
        """Start a turn on the running event loop.

        Raises SessionBusy, SessionNotFound or UsageError before anything begins.
        """
        return self._start(params, workspace, person, listener)

    def start_run(self, wanted: Wanted, workspace: Workspace, person: Person, listener: Listener) -> RunTurn:
        """Run a compiled agent as a turn of its own, in a session of its own, likewise. Raises UsageError where there is no
        folder that agents work in.
        """
        from lyma_server.agent.direct import Doing, RunTurn

        _, refusal = self._bounds(workspace.root)
        if refusal is not None:
            raise UsageError(f"Agents do not run here. {refusal}")
        run = Doing(wanted)
        params = AskParams(prompt=f"Run the agent {wanted.hash}")
        return RunTurn(self._start(params, workspace, person, listener, run.work), run)

    def _start(
        self,
        params: AskParams,
        workspace: Workspace,
        person: Person,
        listener: Listener,
        work: Work = loop.run,
    ) -> Turn:
        _check(params)
        turn = new_identifier()
        root = workspace.root
        uri = None if root is None else workspace.uri(root)
        title = self.redactor.redact(prompt_text(params.prompt)[:TITLE_SOURCE])
        log = self.sessions.begin(turn, params.session, root=uri, title=title)
        ask = self._ask(params, turn, log, workspace, person, listener)
        return Turn(ask, lambda: self.sessions.end(log), work)

    def _ask(  # noqa: PLR0913, PLR0917 - the parts of a turn, each handed on by position once
        self, params: AskParams, turn: str, log: SessionLog, workspace: Workspace, person: Person, listener: Listener
    ) -> Ask:
        events = EventStream(log.session, turn, self.redactor, listener, lambda body: log.keep_event(turn, body))
        log.on_failure = lambda reason: events.emit(
            Notice(text=f"This session is not being saved: {reason}. The answer goes on.", level="warning")
        )
        bounds, refusal = self._bounds(workspace.root)
        return Ask(
            session=log.session,
            turn=turn,
            params=params,
            settings=self.settings,
            limits=limits_of(params.budget, self.settings.max_steps),
            bounds=bounds,
            tools=self._tools() if params.tools and refusal is None else (),
            refusal=refusal if params.tools else None,
            in_project=refusal is None,
            router=self.router,
            workspace=workspace,
            person=person,
            redactor=self.redactor,
            events=events,
            log=log,
            edits=EditBook(turn, log, events.emit),
            new_item=item_identifiers(turn),
            commands=self._commands(log.session, bounds.root) if refusal is None else None,
            subagents=self.subagents if refusal is None else None,
        )

    def _tools(self) -> tuple[Tool, ...]:
        commands = () if self.commands is None else COMMAND_TOOLS
        agents = () if self.subagents is None else AGENT_TOOLS
        return (*TOOLS, *commands, *agents)

    def _commands(self, session: str, root: Path) -> Callable[[], Commands] | None:
        sessions = self.commands
        return None if sessions is None else lambda: sessions.of(session, root)

    def _bounds(self, root: Path | None) -> tuple[Bounds, str | None]:
        if root is None:
            return Bounds(Path("/"), self.home), "There is no folder to work in, so this answer comes without tools."
        real = real_path(root)
        return Bounds(real, self.home), workspace_refusal(real, self.home, user_homes())


def _check(params: AskParams) -> None:
    """Refuse what can never work. Raises UsageError."""
    if not params.prompt or (isinstance(params.prompt, str) and not params.prompt.strip()):
        raise UsageError("The prompt is empty; say what you want to know or to have done.")
    if params.budget is not None:
        _check_budget(params.budget)


def _check_budget(budget: AskBudget) -> None:
    limits = {
        "maxSteps": budget.max_steps,
        "maxTokens": budget.max_tokens,
        "maxCostMicros": budget.max_cost_micros,
        "timeoutMs": budget.timeout_ms,
    }
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise UsageError(f"budget.{name} is {limit}; it must be at least 1, or left out.")
