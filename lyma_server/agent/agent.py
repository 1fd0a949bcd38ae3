"""The main agent: it starts turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import ChatRouter, Listener, Person, Workspace
    from lyma_server.agent.session import SessionStore
    from lyma_server.agent.turn import Turn
    from lyma_server.config.model import AgentSettings
    from lyma_server.protocol.messages import AskParams
    from lyma_server.secret import Redactor


class Agent:
    """Holds what turns share. `home` is Lyma's own folder, which no tool may touch."""

    def __init__(
        self, router: ChatRouter, sessions: SessionStore, settings: AgentSettings, redactor: Redactor, home: Path
    ) -> None:
        self.router = router
        self.sessions = sessions
        self.settings = settings
        self.redactor = redactor
        self.home = home

    def start(self, params: AskParams, workspace: Workspace, person: Person, listener: Listener) -> Turn:
        """Start a turn on the running event loop.

        Raises SessionBusy, SessionNotFound or UsageError before anything begins.
        """
        raise NotImplementedError
