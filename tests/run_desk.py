"""All that a run stands on, in a folder of the test's: a home with approvals, a workspace, a child and a model."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import define, field

from lyma_server.config.model import CeilingSettings
from lyma_server.config.paths import Home
from lyma_server.factory import staging
from lyma_server.factory.factory import Factory
from lyma_server.factory.outcome import RunEvent, RunRequest, RunResult
from lyma_server.factory.run import Runs
from lyma_server.factory.tree import Ground
from lyma_server.secret import Redactor, Secret
from tests.fake_child import FakeSandbox
from tests.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from lyma_server.errors import LymaError
    from lyma_server.factory.bundle import Bundle

SECRET = "sk-test-0123456789abcdefghij"
REDACTOR = Redactor([Secret(SECRET)])


@define(eq=False)
class Desk:
    """`unproven` is raised instead of a proof of the mask."""

    folder: Path
    model: Any = field(factory=ScriptedModel)
    sandbox: Any = field(factory=FakeSandbox)
    unproven: LymaError | None = None
    ceiling: CeilingSettings = field(factory=CeilingSettings)
    events: list[RunEvent] = field(factory=list)
    home: Home = field(init=False)
    workspace: Path = field(init=False)
    factory: Factory = field(init=False)
    runs: Runs = field(init=False)
    _number: int = 0

    def __attrs_post_init__(self) -> None:
        self.home, self.workspace = Home(self.folder / "home"), self.folder / "app"
        self.folder.mkdir(exist_ok=True)
        self.home.ensure()
        self.workspace.mkdir(exist_ok=True)
        self.factory = Factory(self.home, self.ceiling)
        self.runs = Runs(Ground(self.factory, self.model, self.sandbox, self.home, REDACTOR, self._prove))

    async def _prove(self, workspace: Path) -> None:
        assert workspace == self.workspace
        if self.unproven is not None:
            raise self.unproven

    def write(self, files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def approve(self, bundle: Bundle) -> str:
        """Store and approve an agent; its hash."""
        self.factory.store.save(bundle)
        asked = self.factory.gate.ask(bundle, self.workspace, b"shown", "terminal")
        self.factory.gate.answer(asked, bundle.hash, asked.nonce, approved=True)
        return bundle.hash

    def request(self, hash_: str, input_: Any = "go") -> RunRequest:
        self._number += 1
        return RunRequest(hash_, input_, self.workspace, f"run-{self._number}")

    async def run(self, bundle: Bundle, input_: Any = "go") -> RunResult:
        """Approve and run an agent, and see that what is always so is so."""
        return await self.run_hash(self.approve(bundle), input_)

    async def run_hash(self, hash_: str, input_: Any = "go") -> RunResult:
        result = await self.runs.run(self.request(hash_, input_), self.events.append)
        self.check(result)
        return result

    def check(self, result: RunResult) -> None:
        """One status, on the disk too; nothing of the run is left."""
        written = self.home.runs / result.run_id / "result.json"
        assert json.loads(written.read_text()) == json.loads(REDACTOR.redact(json.dumps(result.to_json())))
        assert {path.stat().st_mode & 0o777 for path in written.parent.iterdir()} == {0o600}
        assert (result.output is None) == (result.status != "ok")
        assert (result.error is None) == (result.status == "ok")
        assert not self.runs.list()
        assert not [
            path for place in (staging.FOR_ROOT, self.home.runs / ".staging") for path in place.glob("*lyma-staging-*")
        ]
        assert not getattr(self.sandbox, "running", 0)
        ended = [event for event in self.events if event.run_id == result.run_id and event.kind == "ended"]
        assert len(ended) == 1
        assert ended[0].text.split(":")[0] == result.status

    def notes(self, result: RunResult) -> list[dict[str, Any]]:
        return [json.loads(line) for line in result.transcript.read_text().splitlines()]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """How long a disk takes is nothing that these tests are about."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)


@pytest.fixture(autouse=True)
def own_staging(monkeypatch):
    """A place of the test's own for copies of files, which the users of slots may enter."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="staging-of-test-") as folder:
        Path(folder).chmod(0o711)
        monkeypatch.setattr("lyma_server.factory.staging.FOR_ROOT", Path(folder))
        yield
        assert not list(Path(folder).iterdir())
