"""A desk at which the main agent has sub-agents: real files, a real factory, runs that are played."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.subagents import Subagents
from lyma_server.config.model import CeilingSettings
from lyma_server.config.paths import Home
from lyma_server.factory.factory import Factory
from lyma_server.protocol.items import ToolResultItem
from lyma_server.router.chat import ToolCall
from tests.agents import plain_bundle
from tests.fakes import Desk
from tests.runs import FakeRuns

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.factory.bundle import Bundle


def call(name: str, /, **arguments) -> ToolCall:
    return ToolCall("c1", name, arguments, json.dumps(arguments))


class AgentDesk(Desk):
    """`bundle` is compiled and waits for approval."""

    def __init__(self, folder: Path, *scripts, settings=None, says: bool | None = True, channel="terminal") -> None:
        super().__init__(folder, *scripts, settings=settings, says=says)
        self.root = folder / "work"
        self.root.mkdir()
        self.workspace = DiskWorkspace(self.root)
        self.home = Home(folder / "home")
        self.home.ensure()
        self.factory = Factory(self.home, CeilingSettings())
        self.bundle = plain_bundle()
        self.runs = FakeRuns(self.home.root, output={"text": "done"})
        self.person.channel = channel
        self.store(self.bundle)
        self.agent.subagents = lambda: Subagents(self.factory, lambda: self.runs)

    def store(self, bundle: Bundle) -> str:
        self.factory.store.save(bundle, {})
        return bundle.hash

    def approve(self, hash_: str) -> None:
        questioned = self.factory.question(hash_, self.root, "terminal")
        self.factory.answer(questioned, hash_, questioned.asked.nonce, approved=True)

    @property
    def told(self) -> list[tuple[str, bool]]:
        """What the model was told by its tools, and whether as an error."""
        return [(item.text, item.is_error) for item in self.completed(ToolResultItem)]
