"""Any turns of the file tools, undone from the last to the first, leave every byte as it was."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.agent.agent import Agent
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.rewind import find_turn, undo_turn
from lyma_server.agent.session import SessionStore
from lyma_server.config.model import AgentSettings
from lyma_server.errors import EditConflict, UsageError
from lyma_server.protocol.messages import AskParams
from lyma_server.router.chat import ToolCall
from lyma_server.secret import Redactor
from tests.fakes import Ears, FakePerson, FakeRouter, answer

NAMES = ("a.txt", "b.txt", "deep/c.txt")
CONTENTS = (b"", b"one\n", b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\n", "\ufeffone\r\n".encode("utf-16-le"), b"one")
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("write_file"), names, st.sampled_from(["", "one\n", "zwei 😀\n", "one\ntwo"])),
    st.tuples(st.just("delete_file"), names, st.none()),
    st.tuples(st.just("edit_file"), names, st.sampled_from(["1", "uno\nuna", ""])),
)
turns = st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=4)
trees = st.dictionaries(names, st.sampled_from(CONTENTS))


def call(step: tuple[str, str, str | None]) -> ToolCall:
    tool, path, text = step
    more = {"write_file": {"text": text}, "edit_file": {"edits": [{"old_text": "one", "new_text": text}]}}
    return ToolCall("1", tool, {"path": path, **more.get(tool, {})})


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode) for path in found}


class Scene:
    def __init__(self, folder: Path, tree: dict[str, bytes]) -> None:
        self.root = folder / "work"
        (self.root / "deep").mkdir(parents=True)
        for number, (name, data) in enumerate(tree.items()):
            (self.root / name).write_bytes(data)
            (self.root / name).chmod((0o600, 0o755, 0o644)[number])
        self.store = SessionStore(folder / "home" / "sessions")
        self.workspace = DiskWorkspace(self.root)
        self.home = folder / "home"
        self.session: str | None = None

    async def play(self, turn: list[tuple[str, str, str | None]]) -> None:
        router = FakeRouter(answer(*map(call, turn)), answer("Done."))
        agent = Agent(router, self.store, AgentSettings(), Redactor(), self.home)
        begun = agent.start(AskParams(prompt="Go", session=self.session), self.workspace, FakePerson(), Ears())
        self.session = begun.session
        await begun.result()

    async def undo(self, *, partial: bool = False) -> None:
        await undo_turn(self.store, find_turn(self.store, None, session=self.session), self.workspace, partial=partial)


@settings(max_examples=15, deadline=None)
@given(trees, turns)
def test_all_is_as_it_was(tree: dict[str, bytes], played: list[list[tuple[str, str, str | None]]]) -> None:
    async def check(scene: Scene) -> None:
        states = [files(scene.root)]
        for turn in played:
            await scene.play(turn)
            states.append(files(scene.root))
        while True:
            try:
                await scene.undo()
            except UsageError:
                break
            assert files(scene.root) in states
        assert files(scene.root) == states[0]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Scene(Path(folder).resolve(), tree)))


@settings(max_examples=10, deadline=None)
@given(trees, st.lists(steps, min_size=1, max_size=5), names)
def test_what_somebody_else_wrote_survives(
    tree: dict[str, bytes], turn: list[tuple[str, str, str | None]], touched: str
) -> None:
    async def check(scene: Scene) -> None:
        await scene.play(turn)
        (scene.root / touched).write_bytes(b"somebody else's")
        before = files(scene.root)
        try:
            await scene.undo()
        except UsageError:
            return
        except EditConflict:
            assert files(scene.root) == before
            await scene.undo(partial=True)
        assert files(scene.root)[touched][0] == b"somebody else's"

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Scene(Path(folder).resolve(), tree)))
