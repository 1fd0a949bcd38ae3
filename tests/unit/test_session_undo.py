"""What a turn changed is put back byte for byte, and what somebody changed since is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lyma_server.agent.agent import Agent
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.session import SessionStore
from lyma_server.agent.undo import Undone, undo_edits
from lyma_server.config.model import AgentSettings
from lyma_server.protocol.messages import AskParams
from lyma_server.router.chat import ToolCall
from lyma_server.secret import Redactor
from tests.fakes import Ears, FakePerson, FakeRouter, answer

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = {
    "edited.txt": b"\xef\xbb\xbfone\r\ntwo\r\n",
    "wide.txt": "\ufeffwide\r\n".encode("utf-16-be"),
    "deleted.sh": b"#!/bin/sh\n",
    "untouched.txt": b"x\n",
}


def call(name: str, **arguments) -> ToolCall:
    return ToolCall("1", name, arguments)


def edit(path: str, old: str, new: str) -> ToolCall:
    return call("edit_file", path=path, edits=[{"old_text": old, "new_text": new}])


TURN = answer(
    edit("edited.txt", "one", "1"),
    edit("edited.txt", "two", "2"),
    edit("wide.txt", "wide", "wider"),
    call("delete_file", path="deleted.sh"),
    call("write_file", path="new/made.txt", text="new\n"),
    call("write_file", path="passing.txt", text="new\n"),
    call("delete_file", path="passing.txt"),
    edit("edited.txt", "nowhere", "x"),
)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        for name, data in BEFORE.items():
            (self.root / name).write_bytes(data)
        (self.root / "deleted.sh").chmod(0o750)
        self.sessions = SessionStore(folder / "home" / "sessions")
        router = FakeRouter(TURN, answer("Done."))
        self.agent = Agent(router, self.sessions, AgentSettings(), Redactor(), folder / "home")
        self.session = self.turn = ""

    async def play(self) -> None:
        turn = self.agent.start(AskParams(prompt="Go"), DiskWorkspace(self.root), FakePerson(), Ears())
        self.session, self.turn = turn.session, turn.turn
        await turn.result()

    def undo(self) -> dict[str, Undone]:
        edits = self.sessions.edits(self.session)[self.turn]
        undone = undo_edits(edits, self.sessions.undo_folder(self.session))
        return {str(each.path.relative_to(self.root)): each for each in undone}

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    await scene.play()
    assert scene.files().keys() == {"edited.txt", "wide.txt", "untouched.txt", "new/made.txt"}
    return scene


async def test_everything_is_put_back(scene: Scene) -> None:
    outcomes = {name: each.outcome for name, each in scene.undo().items()}
    assert outcomes == {
        "edited.txt": "restored",
        "wide.txt": "restored",
        "deleted.sh": "restored",
        "new/made.txt": "removed",
        "passing.txt": "unchanged",
    }
    assert scene.files() == BEFORE
    assert (scene.root / "deleted.sh").stat().st_mode & 0o777 == 0o750


async def test_a_second_undo_changes_nothing(scene: Scene) -> None:
    scene.undo()
    assert {each.outcome for each in scene.undo().values()} == {"unchanged"}
    assert scene.files() == BEFORE


async def test_what_was_changed_since_is_kept(scene: Scene) -> None:
    (scene.root / "edited.txt").write_bytes(b"mine")
    (scene.root / "deleted.sh").write_bytes(b"mine too")
    undone = scene.undo()
    assert undone["edited.txt"].reason == undone["deleted.sh"].reason == "It was changed since."
    assert (scene.root / "edited.txt").read_bytes() == b"mine"
    assert (scene.root / "deleted.sh").read_bytes() == b"mine too"
    assert undone["wide.txt"].outcome == "restored"


async def test_a_link_in_place_of_a_folder_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    (scene.root / "new").rename(tmp_path / "elsewhere")
    (scene.root / "new").symlink_to(tmp_path / "elsewhere")
    assert "has become a link" in scene.undo()["new/made.txt"].reason
    assert (tmp_path / "elsewhere" / "made.txt").exists()


async def test_damaged_data_is_not_put_back(scene: Scene) -> None:
    for kept in scene.sessions.undo_folder(scene.session).folder.iterdir():
        kept.write_bytes(b"damaged")
    assert "is damaged" in scene.undo()["edited.txt"].reason
    assert (scene.root / "edited.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"
