"""The file tools on real files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.agent.bounds import Bounds
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.edits import EditBook
from lyma_server.agent.session import SessionStore
from lyma_server.agent.tools import reading, searching
from lyma_server.agent.tools.base import Toolbox
from lyma_server.agent.tools.hunks import Hunk, replace
from lyma_server.agent.tools.registry import TOOLS
from lyma_server.agent.undo import UndoFolder
from lyma_server.config.model import AgentSettings
from lyma_server.errors import LymaError, ToolError
from lyma_server.protocol.events import Notice
from lyma_server.secret import Redactor
from tests.fakes import FakePerson

if TYPE_CHECKING:
    from pathlib import Path


class Bench:
    """The tools with a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.root, home = folder / "work", folder / ".lyma"
        self.root.mkdir()
        home.mkdir()
        self.said: list = []
        self.log = SessionStore(home / "sessions").begin("turn", None, root=None, title="")
        self.edits = EditBook("turn", self.log, self.said.append)
        self.box = Toolbox(
            call="call",
            bounds=Bounds(self.root, home),
            workspace=DiskWorkspace(self.root),
            person=FakePerson(),
            settings=AgentSettings(),
            redactor=Redactor(),
            edits=self.edits,
            emit=self.said.append,
            new_item=lambda: "item",
        )

    async def use(self, name: str, **arguments) -> str:
        [tool] = [tool for tool in TOOLS if tool.name == name]
        return await tool.run(arguments, self.box)

    async def edit(self, *pairs: tuple[str, str], path: str = "a.txt") -> str:
        return await self.use("edit_file", path=path, edits=[{"old_text": old, "new_text": new} for old, new in pairs])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_reading_whole_and_by_lines(bench: Bench) -> None:
    (bench.root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\x0cstill three")
    assert await bench.use("read_file", path="a.txt") == "[a.txt, lines 1-3 of 3]\none\ntwo\nthree\x0cstill three"
    assert await bench.use("read_file", path="a.txt", first_line=2, last_line=2) == (
        "[a.txt, lines 2-2 of 3]\ntwo\n[read on from line 3]"
    )
    assert await bench.use("read_file", path="a.txt", first_line=3, last_line=99) == (
        "[a.txt, lines 3-3 of 3]\nthree\x0cstill three"
    )
    with pytest.raises(ToolError, match="has 3 lines; there are none from 4"):
        await bench.use("read_file", path="a.txt", first_line=4)


async def test_reading_what_is_empty_or_long(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_READING", 10)
    (bench.root / "empty").write_text("")
    (bench.root / "long").write_text("12345\n" * 3)
    (bench.root / "wide").write_text("x" * 99)
    assert await bench.use("read_file", path="empty") == "[an empty file]\n"
    assert await bench.use("read_file", path="long") == "[long, lines 1-1 of 3]\n12345\n[read on from line 2]"
    assert (
        await bench.use("read_file", path="wide")
        == "[wide, lines 1-1 of 1]\nxxxxxxxxxx\n[line 1 goes on; it is too long]"
    )


async def test_editing_keeps_everything_else(bench: Bench) -> None:
    path = bench.root / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    path.chmod(0o755)
    assert await bench.edit(("two\n", "2\n2b\n"), ("three", "3")) == "a.txt was changed: 3 lines added, 2 removed."
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n2b\r\n3\r\n"
    assert path.stat().st_mode & 0o777 == 0o755


async def test_edits_are_all_made_or_none(bench: Bench) -> None:
    path = bench.root / "a.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(ToolError, match="edit 2 does not stand in the file"):
        await bench.edit(("one", "1"), ("1\n", "changed\n"))
    assert path.read_text() == "one\ntwo\n"


async def test_writing_new_and_existing_files(bench: Bench) -> None:
    assert (
        await bench.use("write_file", path="new/a.txt", text="one\n")
        == "new/a.txt was written: 1 lines added, 0 removed."
    )
    (bench.root / "w.txt").write_bytes(b"old\r\nold\r\n")
    await bench.use("write_file", path="w.txt", text="new\nnew\n")
    assert (bench.root / "w.txt").read_bytes() == b"new\r\nnew\r\n"
    assert "nothing was changed" in await bench.use("write_file", path="w.txt", text="new\nnew\n")


async def test_binaries_and_folders_are_not_overwritten(bench: Bench) -> None:
    (bench.root / "image").write_bytes(b"\x89PNG\0")
    (bench.root / "folder").mkdir()
    for path in ("image", "folder"):
        with pytest.raises(ToolError):
            await bench.use("write_file", path=path, text="x")
    assert (bench.root / "image").read_bytes() == b"\x89PNG\0"


async def test_the_mark_of_a_secret_is_never_written(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("key = 1\n")
    for arguments in (("key = 1", "key = [redacted]"), ("key = [redacted]", "key = 2")):
        with pytest.raises(ToolError, match="stands for a secret"):
            await bench.edit(arguments)
    with pytest.raises(ToolError, match="stands for a secret"):
        await bench.use("write_file", path="b.txt", text="[redacted]")
    assert [path.name for path in bench.root.iterdir()] == ["a.txt"]


async def test_what_a_turn_changed_is_summed_up_and_can_be_undone(bench: Bench) -> None:
    path = bench.root / "a.txt"
    path.write_bytes(b"one\r\n")
    path.chmod(0o640)
    await bench.edit(("one", "two"))
    await bench.edit(("two", "three\nfour"))
    await bench.use("write_file", path="gone.txt", text="x\n")
    await bench.use("delete_file", path="gone.txt")
    await bench.use("write_file", path="b.txt", text="x\n")
    assert [(edit.path, edit.added, edit.removed) for edit in bench.edits.summaries()] == [
        ("a.txt", 2, 1),
        ("b.txt", 1, 0),
    ]
    from lyma_server.agent.record import records

    kept = list(records(bench.log.path.read_bytes(), "edit"))
    undo = UndoFolder(bench.log.undo_folder)
    assert undo.content(kept[0]["before"]) == b"one\r\n"
    assert kept[0]["mode"] == 0o640
    assert undo.content(kept[1]["after"]) == path.read_bytes() == b"three\r\nfour\r\n"
    assert (kept[2]["before"], kept[3]["after"]) == (None, None)
    assert {file.stat().st_mode & 0o777 for file in undo.folder.iterdir()} == {0o600}


async def test_edits_that_cannot_be_kept_for_undo_are_made_and_said(bench: Bench) -> None:
    bench.log.undo_folder.write_text("in the way")
    await bench.use("write_file", path="a.txt", text="x\n")
    await bench.use("write_file", path="b.txt", text="x\n")
    [notice] = [body for body in bench.said if isinstance(body, Notice)]
    assert "cannot be undone" in notice.text


async def test_damaged_undo_data_is_not_used(bench: Bench) -> None:
    undo = UndoFolder(bench.log.undo_folder)
    name = undo.keep(b"content") or ""
    (undo.folder / name).write_bytes(b"other")
    with pytest.raises(ValueError, match="damaged"):
        undo.content(name)


async def test_listing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await bench.use("list_files") == "[no files in .]"
    for name in ("a.py", "src/b.py", "src/c.txt"):
        await bench.use("write_file", path=name, text="x\n")
    assert await bench.use("list_files") == "[3 files in .]\na.py\nsrc/b.py\nsrc/c.txt"
    assert await bench.use("list_files", path="src", glob="*.py") == "[1 files in src]\nb.py"
    monkeypatch.setattr(searching, "MOST_FILES", 2)
    assert (await bench.use("list_files")).endswith("\na.py\nsrc/ (2 files)")


async def test_searching(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "src/b.py"):
        await bench.use("write_file", path=name, text="one\ntwo\n")
    assert await bench.use("search", pattern="t.o") == "[2 matches]\na.py:2: two\nsrc/b.py:2: two"
    assert await bench.use("search", pattern="ONE", path="src", ignore_case=True) == "[1 matches]\nsrc/b.py:1: one"
    assert await bench.use("search", pattern="one", path="src/b.py") == "[1 matches]\nsrc/b.py:1: one"
    assert await bench.use("search", pattern="three") == "[no matches]"
    monkeypatch.setattr(searching, "MOST_MATCHES", 1)
    assert "first 1 follow" in await bench.use("search", pattern="one")
    with pytest.raises(LymaError):
        await bench.use("search", pattern="x", path="..")


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS])
def test_the_tools_have_schemas_that_close(name: str) -> None:
    [tool] = [tool for tool in TOOLS if tool.name == name]
    assert tool.schema["additionalProperties"] is False
    assert set(tool.schema["required"]) <= set(tool.schema["properties"])
    assert tool.description.endswith(".")


HUNK_ERRORS = [
    ("a b a", [Hunk("a", "x")], "2 times"),
    ("aaa", [Hunk("aa", "x")], "2 times"),
    ("abc", [Hunk("ab", "x"), Hunk("bc", "y")], "overlap"),
    ("abc", [Hunk("", "x")], "empty old_text"),
    ("abc", [Hunk("a", "a")], "changes nothing"),
    ("  one\n  two\n", [Hunk("one\ntwo", "x")], "with other spaces, it does at line 1"),
    ("abc", [Hunk("d", "x")], "does not stand in the file"),
]


@pytest.mark.parametrize(("text", "hunks", "complaint"), HUNK_ERRORS)
def test_hunks_that_do_not_fit(text: str, hunks: list[Hunk], complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        replace(text, hunks)


@given(st.lists(st.text("ab", max_size=3), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_a_hunk_changes_its_lines_and_nothing_else(lines: list[str], end: str, data: st.DataObject) -> None:
    lines = [f"{number}{line}" for number, line in enumerate(lines)]
    chosen = data.draw(st.integers(0, len(lines) - 1))
    text = end.join([*lines, ""])
    changed = [*lines[:chosen], "new", "er", *lines[chosen + 1 :], ""]
    assert replace(text, [Hunk(lines[chosen] + "\n", "new\ner\n")]) == end.join(changed)


def test_line_ends_that_are_mixed_stay_where_nothing_is_changed() -> None:
    assert replace("a\r\nb\nc\r\nd\n", [Hunk("b\nc", "B")]) == "a\r\nB\r\nd\n"
    assert replace("a\nb\r\nc\nd\n", [Hunk("a\nb\nc", "a\nb\nC")]) == "a\nb\r\nC\nd\n"
    assert replace("a\nb\r\nc\nd\n", [Hunk("a\nb\nc", "A\nb\nc")]) == "A\nb\r\nc\nd\n"
    assert replace("aa\r\naa\nx\n", [Hunk("aa\naa\n", "aa\naa\naa\n")]) == "aa\r\naa\naa\nx\n"
