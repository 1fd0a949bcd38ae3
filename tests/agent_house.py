"""A workspace, a provider on loopback and a real server for it, and a person at an editor that can more or less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lyma_server.protocol.agents import ApproveResult, SubagentResult
from lyma_server.protocol.convert import structure
from tests.agent_script import NAME, SPEC
from tests.editors.real_server import COMMAND, settings
from tests.raw_client import RawClient, Refusal
from tests.stub_provider import StubProvider, say

if TYPE_CHECKING:
    from pathlib import Path

DONE = [say("Done.")]
ABLE = {"experimental": {"lyma": {"protocolVersion": 1, "events": {}, "approvals": {}}}}
PLAIN = {"window": {"showDocument": {"support": True}, "showMessage": {"messageActionItem": {}}}}


SHOWN = {"success": True}


class House:
    """A workspace, a provider on loopback and a server, with all that the person is asked and answers."""

    def __init__(self, folder: Path, replies: Any = DONE) -> None:
        self.root, self.home = folder / "app", folder / "home"
        self.root.mkdir()
        (self.root / "CHANGELOG.md").write_text("old\n")
        self.stub = StubProvider(replies)
        self.asked: list[dict[str, Any]] = []

    def __enter__(self):
        self.stub.__enter__()
        self.client = RawClient(COMMAND, env=settings(self.stub, self.home))
        self.client.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self.client.__exit__(*problem)
        self.stub.__exit__(*problem)

    def start(self, capabilities: dict[str, Any], **answers: Any) -> dict[str, Any]:
        methods = {
            "request": "lyma/requestApproval",
            "show": "window/showDocument",
            "prompt": "window/showMessageRequest",
        }
        for name, method in methods.items():
            self.client.answers[method] = self._keeping(answers.get(name, Refusal()))
        folders = [{"uri": self.root.as_uri(), "name": "app"}]
        return self.client.initialize(capabilities, workspaceFolders=folders)

    def answer(self, **answers: Any) -> None:
        methods = {
            "request": "lyma/requestApproval",
            "show": "window/showDocument",
            "prompt": "window/showMessageRequest",
        }
        for name, method in methods.items():
            self.client.answers[method] = self._keeping(answers.get(name, Refusal()))

    def _keeping(self, answer: Any):
        def reply(params):
            self.asked.append(params)
            return answer(params) if callable(answer) else answer

        return reply

    def write_spec(self, text: str = SPEC) -> Path:
        path = self.root / ".lyma" / "agents" / NAME / "agent.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def do(self, action: str, **params: Any) -> SubagentResult:
        return structure(SubagentResult, self.result("lyma/subagent", action=action, **params))

    def approvals(self, action: str, **params: Any) -> ApproveResult:
        return structure(ApproveResult, self.result("lyma/approve", action=action, **params))

    def result(self, method: str, **params: Any) -> Any:
        reply = self.client.call(method, params)
        assert "error" not in reply, reply
        return reply["result"]

    def kind(self, method: str, **params: Any) -> str:
        return self.client.call(method, params)["error"]["data"]["kind"]

    def compiled(self) -> str:
        self.write_spec()
        return self.do("compile", agent=NAME).hash

    def standing(self, hash_: str) -> str:
        return next(agent.approval for agent in self.do("list").agents if agent.hash == hash_)


def say_yes(params: dict[str, Any]) -> dict[str, Any]:
    return {"hash": params["hash"], "nonce": params["nonce"], "approved": True}


def press(beginning: str):
    def choose(params: dict[str, Any]) -> Any:
        return next(action for action in params["actions"] if action["title"].startswith(beginning))

    return choose
