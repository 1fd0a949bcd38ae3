"""A project with a small agent, and a model that has the agent run: for tests of what an editor shows and answers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.agents import document, text_of
from tests.raw_client import environment
from tests.stub_provider import Reply, Request, call_tool, say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

QUIET: dict[str, Any] = {"files__write": [], "tools__allow": ["fs.list"], "tools__python": [], "output__schema": ""}


class Project:
    """`hash` is what the agent was compiled to last, and what the model asks to run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hash = ""
        self.spec = root / ".lyma" / "agents" / "tidy" / "agent.toml"
        self.spec.parent.mkdir(parents=True)
        self.write()

    def write(self, **changes: Any) -> None:
        self.spec.write_bytes(text_of(document(name="tidy", **QUIET, **changes)))

    def compile(self, variables: Mapping[str, str]) -> str:
        """Compile it as a person would in a terminal."""
        words = [sys.executable, "-m", "lyma_server", "compile-agent", "tidy"]
        done = subprocess.run(
            words, cwd=self.root, env=environment(**variables), capture_output=True, text=True, check=True
        )
        self.hash = done.stdout.split()[0]
        return self.hash

    def answer(self, request: Request) -> Reply:
        """Each turn has the agent run once."""
        if "You are tidy" in request.raw.decode():
            return say("three files")
        if request.body["messages"][-1]["role"] == "tool":
            return say("that was all")
        return call_tool("run_compiled_agent", {"hash": self.hash, "input": {"n": 1}})


def told(request: Request) -> str:
    """What the model was told last, if that is what came of a tool."""
    last = request.body["messages"][-1]
    return str(last["content"]) if last["role"] == "tool" else ""
