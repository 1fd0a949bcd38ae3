"""Which turn is undone, what stands in its way, and what happens to files that are open in an editor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from lyma_server.agent.agent import Agent
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.ports import FileChange, FileText
from lyma_server.agent.rewind import find_turn, turn_diff, turns_of, undo_turn
from lyma_server.agent.session import SessionStore
from lyma_server.config.model import AgentSettings
from lyma_server.errors import EditConflict, SessionBusy, UsageError
from lyma_server.protocol.messages import AskParams
from lyma_server.router.chat import Text, ToolCall
from lyma_server.secret import Redactor
from tests.fakes import Ears, FakePerson, FakeRouter, answer

if TYPE_CHECKING:
    from pathlib import Path


def edit(path: str, old: str, new: str) -> ToolCall:
    return ToolCall("1", "edit_file", {"path": path, "edits": [{"old_text": old, "new_text": new}]})


def write(path: str, text: str) -> ToolCall:
    return ToolCall("1", "write_file", {"path": path, "text": text})


class OpenWorkspace(DiskWorkspace):
    """A workspace in which some files are open in an editor: buffers hold their text."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.buffers: dict[Path, str] = {}
        self.refuses = False

    async def read(self, path: Path) -> FileText:
        if path not in self.buffers:
            return await super().read(path)
        return FileText(path, self.buffers[path], f"buffer:{self.buffers[path]}", from_editor=True)

    async def apply(self, change: FileChange) -> None:
        if change.path not in self.buffers:
            await super().apply(change)
            return
        if self.refuses or change.base != f"buffer:{self.buffers[change.path]}":
            raise EditConflict("The editor refused.")
        self.buffers[change.path] = change.text or ""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.file.write_bytes(b"one\r\ntwo\r\n")
        self.other.write_text("x\n")
        self.workspace = OpenWorkspace(self.root)
        self.store = SessionStore(folder / "home" / "sessions")
        self.router = FakeRouter()
        self.agent = Agent(self.router, self.store, AgentSettings(), Redactor(), folder / "home")
        self.session: str | None = None

    @property
    def file(self) -> Path:
        return self.root / "a.txt"

    @property
    def other(self) -> Path:
        return self.root / "b.txt"

    async def turn(self, *calls: ToolCall) -> str:
        self.router.scripts += [answer(*calls), answer("Done.")]
        turn = self.agent.start(
            AskParams(prompt="Go", session=self.session), self.workspace, FakePerson(), Ears()
        )  # fmt: skip
        self.session = turn.session
        await turn.result()
        return turn.turn

    async def undo(self, named: str | None = None, *, partial: bool = False) -> dict[str, str]:
        found = find_turn(self.store, named, session=self.session)
        done = await undo_turn(self.store, found, self.workspace, partial=partial)
        return {each.path.name: each.outcome for each in done}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path.resolve())


async def test_undoing_twice_goes_back_two_turns(scene: Scene) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    await scene.turn(edit("a.txt", "1", "uno"))
    await scene.turn(ToolCall("1", "read_file", {"path": "a.txt"}))
    assert await scene.undo() == {"a.txt": "restored"}
    assert scene.file.read_bytes() == b"1\r\ntwo\r\n"
    assert await scene.undo() == {"a.txt": "restored"}
    assert scene.file.read_bytes() == b"one\r\ntwo\r\n"
    with pytest.raises(UsageError, match="No turn in this session"):
        await scene.undo()


async def test_a_turn_is_named_by_the_end_of_its_id(scene: Scene) -> None:
    first = await scene.turn(edit("a.txt", "one", "1"))
    await scene.turn(edit("b.txt", "x", "y"))
    assert await scene.undo(first[-8:]) == {"a.txt": "restored"}
    assert scene.other.read_text() == "y\n"
    for wrong in ("", first[-3:], "zzzzzzzz", first[:8]):
        with pytest.raises(UsageError):
            await scene.undo(wrong)


async def test_the_last_turn_of_the_folder_is_found_over_its_sessions(scene: Scene) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    scene.session = None
    last = await scene.turn(edit("b.txt", "x", "y"))
    assert find_turn(scene.store, None, root=scene.root.as_uri()).turn == last
    with pytest.raises(UsageError, match="this folder"):
        find_turn(scene.store, None, root="file:///elsewhere")


async def test_one_file_that_was_changed_since_keeps_all_as_they_are(scene: Scene) -> None:
    turn = await scene.turn(edit("a.txt", "one", "1"), edit("b.txt", "x", "y"))
    scene.other.write_text("mine\n")
    with pytest.raises(EditConflict, match=r"Nothing was undone, for b\.txt") as caught:
        await scene.undo()
    assert caught.value.data["files"] == [{"uri": scene.other.as_uri(), "reason": "It was changed since."}]
    assert scene.file.read_bytes() == b"1\r\ntwo\r\n"
    assert not turns_of(scene.store, scene.session)[0].undone
    assert await scene.undo(partial=True) == {"a.txt": "restored", "b.txt": "kept"}
    assert (scene.file.read_bytes(), scene.other.read_text()) == (b"one\r\ntwo\r\n", "mine\n")
    assert turns_of(scene.store, scene.session)[0].turn == turn
    assert turns_of(scene.store, scene.session)[0].undone


async def test_an_edit_that_was_refused_is_nothing_to_undo(scene: Scene) -> None:
    scene.workspace.buffers[scene.other] = "x\n"
    scene.workspace.refuses = True
    await scene.turn(edit("a.txt", "one", "1"), edit("b.txt", "x", "y"))
    del scene.workspace.buffers[scene.other]
    scene.other.write_text("mine\n")
    assert await scene.undo() == {"a.txt": "restored"}
    assert scene.other.read_text() == "mine\n"


async def test_an_open_file_is_put_back_in_the_editor(scene: Scene) -> None:
    scene.workspace.buffers[scene.file] = "one\ntwo"
    await scene.turn(edit("a.txt", "one", "1"))
    assert scene.workspace.buffers[scene.file] == "1\ntwo"
    assert await scene.undo() == {"a.txt": "restored"}
    assert scene.workspace.buffers[scene.file] == "one\ntwo"
    assert scene.file.read_bytes() == b"one\r\ntwo\r\n"


async def test_a_buffer_that_was_changed_since_is_left_alone(scene: Scene) -> None:
    scene.workspace.buffers[scene.file] = "one\ntwo"
    await scene.turn(edit("a.txt", "one", "1"))
    scene.workspace.buffers[scene.file] += " and mine"
    with pytest.raises(EditConflict):
        await scene.undo()
    assert scene.workspace.buffers[scene.file] == "1\ntwo and mine"


async def test_a_file_that_was_saved_and_closed_is_put_back_on_the_disk(scene: Scene) -> None:
    scene.workspace.buffers[scene.file] = "one\r\ntwo\r\n"
    await scene.turn(edit("a.txt", "one", "1"))
    scene.file.write_bytes(scene.workspace.buffers.pop(scene.file).encode())
    assert await scene.undo() == {"a.txt": "restored"}
    assert scene.file.read_bytes() == b"one\r\ntwo\r\n"


async def test_an_editor_that_refuses_keeps_its_file(scene: Scene) -> None:
    scene.workspace.buffers[scene.file] = "one\ntwo"
    await scene.turn(edit("a.txt", "one", "1"))
    scene.workspace.refuses = True
    assert await scene.undo() == {"a.txt": "kept"}
    assert not turns_of(scene.store, scene.session)[0].undone


async def test_no_turn_runs_while_files_are_put_back(scene: Scene) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    found = find_turn(scene.store, None, session=scene.session)
    log = scene.store.begin("t", scene.session, root=None, title="")
    with pytest.raises(SessionBusy):
        await undo_turn(scene.store, found, scene.workspace, partial=False)
    scene.store.end(log)
    assert scene.file.read_bytes() == b"1\r\ntwo\r\n"


async def test_the_model_learns_that_its_changes_are_gone(scene: Scene) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    await scene.undo()
    await scene.turn()
    said = [
        block.text
        for message in scene.router.requests[-1].messages
        for block in message.blocks
        if isinstance(block, Text)
    ]
    assert any("has undone what you changed in: a.txt" in text for text in said)


async def test_the_diff_is_from_before_the_first_edit_to_after_the_last(scene: Scene) -> None:
    await scene.turn(
        edit("a.txt", "one", "1"), edit("a.txt", "1", "uno"), write("new.txt", "n\n"), write("b.txt", "x\n")
    )
    found = find_turn(scene.store, None, session=scene.session)
    assert turn_diff(scene.store, found, scene.root) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\r\n+uno\r\n two\r\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+n\n"
    )
    passing = evolve(found, edits=(found.edits[0], evolve(found.edits[1], after=found.edits[0].before)))
    assert turn_diff(scene.store, passing, scene.root) == ""


async def test_a_fork_has_no_edits_of_its_own(scene: Scene) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    await scene.undo()
    fork = scene.store.fork(scene.session).session
    assert turns_of(scene.store, fork) == ()
    assert not scene.store.undone(fork)


@pytest.mark.parametrize("text", ["x\n", "y\n"])
async def test_a_file_that_was_deleted_and_written_anew_gets_its_old_mode_back(scene: Scene, text: str) -> None:
    scene.other.chmod(0o600)
    await scene.turn(ToolCall("1", "delete_file", {"path": "b.txt"}), write("b.txt", text))
    assert scene.other.stat().st_mode & 0o777 != 0o600
    assert await scene.undo() == {"b.txt": "restored"}
    assert (scene.other.read_text(), scene.other.stat().st_mode & 0o777) == ("x\n", 0o600)
    scene.other.chmod(0o640)
    await scene.turn(edit("b.txt", "x", "y"))
    scene.other.chmod(0o644)
    await scene.undo()
    assert scene.other.stat().st_mode & 0o777 == 0o644


async def test_a_file_that_was_deleted_while_it_was_open_is_put_back_on_the_disk(scene: Scene) -> None:
    scene.file.chmod(0o640)
    await scene.turn(ToolCall("1", "delete_file", {"path": "a.txt"}))
    scene.workspace.buffers[scene.file] = "one\ntwo"
    assert await scene.undo() == {"a.txt": "restored"}
    assert (scene.file.read_bytes(), scene.file.stat().st_mode & 0o777) == (b"one\r\ntwo\r\n", 0o640)


async def test_a_folder_is_the_same_however_its_uri_is_written(scene: Scene) -> None:
    last = await scene.turn(edit("a.txt", "one", "1"))
    uri = "file://" + "".join(f"%{byte:02x}" for byte in bytes(scene.root))
    assert find_turn(scene.store, None, root=uri).turn == last
    assert scene.store.latest(uri) == scene.session
    assert scene.store.latest(uri + "x") is None


async def test_a_clock_that_was_set_back_does_not_change_which_turn_was_last(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.turn(edit("a.txt", "one", "1"))
    yesterday = time.time_ns() - 86_400 * 10**9
    with monkeypatch.context() as patched:
        patched.setattr("lyma_server.agent.identifiers.time.time_ns", lambda: yesterday)
        last = await scene.turn(edit("a.txt", "1", "uno"))
    for where in ({"session": scene.session}, {"root": scene.root.as_uri()}):
        assert find_turn(scene.store, None, **where).turn == last
