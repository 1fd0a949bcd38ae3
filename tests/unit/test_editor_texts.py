"""Lines, columns, edits and addresses, as editors count and write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.editor.client import Client
from lyma_server.editor.features.documents import Document
from lyma_server.editor.features.edits import minimal_edit, workspace_edit
from lyma_server.editor.features.positions import split_lines, to_character, to_column, to_offset, units
from lyma_server.editor.features.uris import is_inside, real_path, to_path, to_uri
from lyma_server.editor.features.workspace import find_root
from lyma_server.errors import EditConflict, UsageError
from lyma_server.protocol.messages import ActiveDocument, AskContext

ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXTS = st.text(st.sampled_from("ab \t\r\n\u2028\x0cμ漢😀é"), max_size=40)


@given(TEXTS)
def test_lines_joined_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.count("\n") <= 1 for line in lines)
    assert not lines[-1].endswith(("\n", "\r"))


@pytest.mark.parametrize(
    ("encoding", "expected"), [("utf-8", [0, 2, 5, 9, 10]), ("utf-16", [0, 1, 2, 4, 5]), ("utf-32", [0, 1, 2, 3, 4])]
)
def test_columns_survive_letters_of_every_width(encoding: str, expected: list[int]) -> None:
    line = "μ漢😀a\n"
    assert [to_character(line, column, encoding) for column in range(5)] == expected
    assert [to_column(line, character, encoding) for character in expected] == [0, 1, 2, 3, 4]
    assert to_column(line, 1000, encoding) == 4


def test_a_position_inside_a_letter_is_before_it() -> None:
    assert to_column("a😀b", 2, "utf-16") == 1
    assert to_column("a😀b", 3, "utf-8") == 1


def apply_edit(text: str, edit: dict, encoding: str) -> str:
    """What an editor does with a TextEdit."""
    lines = split_lines(text)
    start, end = (to_offset(lines, at["line"], at["character"], encoding) for at in edit["range"].values())
    assert start <= end
    return text[:start] + edit["newText"] + text[end:]


@given(TEXTS, TEXTS, st.sampled_from(ENCODINGS))
def test_an_edit_makes_the_new_text_of_the_old(old: str, new: str, encoding: str) -> None:
    assert apply_edit(old, minimal_edit(old, new, encoding), encoding) == new


def test_an_edit_leaves_alone_what_stays() -> None:
    edit = minimal_edit("a\r\nb\r\nc\r\nd\r\n", "a\r\nB\r\nc\r\nd\r\n", "utf-16")
    assert edit == {
        "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
        "newText": "B\r\n",
    }


@pytest.mark.parametrize("old", ["one\rtwo\nthree\n", "x\ny\rtwo\n", "two\r"])
def test_an_edit_below_a_line_end_that_not_all_editors_know_is_refused(old: str) -> None:
    document = Document("untitled:a", 1, old)
    with pytest.raises(EditConflict, match="carriage return"):
        workspace_edit(Client({}), document, old.replace("two", "2"))


def test_an_edit_above_such_a_line_end_is_made() -> None:
    (edit,) = workspace_edit(Client({}), Document("untitled:a", 1, "two\na\rb\n"), "2\na\rb\n")["changes"]["untitled:a"]
    assert edit["newText"] == "2\n"


def test_units() -> None:
    assert [units("é😀", encoding) for encoding in ENCODINGS] == [6, 3, 2]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file://localhost/a%20b/%C3%A9.py", "/a b/é.py"),
        ("FILE:///a/../b//c", "/b/c"),
        ("file:///a#b?c", "/a#b?c"),
        ("file:///a?b#c", "/a?b#c"),
        ("file:///a%23b", "/a#b"),
        ("file:///%ff", os.fsdecode(b"/\xff")),
    ],
)
def test_uris_name_paths(uri: str, path: str) -> None:
    assert to_path(uri) == Path(path)
    assert to_path(to_uri(path)) == Path(path)


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "file://host/a", "/a", "", "file:a", "http://x/", "file:///%00", "file://[/"]
)
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        to_path(uri)
    assert real_path(uri) is None


@given(
    st.text(min_size=1, max_size=10).filter(
        lambda name: "\0" not in name and "/" not in name and name not in {".", ".."}
    )
)
def test_a_uri_and_back(name: str) -> None:
    path = Path("/") / name.encode("utf-8", "surrogateescape" if name.isascii() else "replace").decode()
    assert to_path(to_uri(path)) == path


def test_inside_is_by_whole_names() -> None:
    assert is_inside("/a/b", "/a")
    assert is_inside("/a", "/a")
    assert is_inside("/a", "/")
    assert not is_inside("/ab", "/a")


def context(active: str | None = None, root: str | None = None) -> AskContext:
    return AskContext(active=None if active is None else ActiveDocument(uri=active), root=root)


@pytest.mark.parametrize(
    ("folders", "given_context", "root"),
    [
        ([], None, None),
        ([], context("file:///p/a.py"), "/p"),
        (["file:///p", "file:///q"], None, "/p"),
        (["file:///p", "file:///q"], context("file:///q/a.py"), "/q"),
        (["file:///p", "file:///p/inner"], context("file:///p/inner/a.py"), "/p/inner"),
        (["file:///p"], context("file:///elsewhere/a.py"), "/p"),
        (["file:///p"], context("untitled:1"), "/p"),
        (["file:///p"], context("file:///p/a.py", "file:///r%20s"), "/r s"),
        (["untitled:x"], None, None),
    ],
)
def test_the_root_is_the_folder_that_owns_the_active_file(
    folders: list[str], given_context: AskContext, root: str
) -> None:
    assert find_root(folders, given_context) == (root and Path(root))


def test_a_linked_folder_owns_its_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = find_root([to_uri(tmp_path / "link")], context(to_uri(tmp_path / "real" / "a.py")))
    assert found == tmp_path / "real"
