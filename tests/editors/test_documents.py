"""What the agent sees of the editor's documents, and how its edits arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lyma_server.editor.features.positions import split_lines, to_offset
from lyma_server.editor.features.uris import to_uri
from tests.raw_client import RawClient

EDITING = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}


class Editor:
    """A client with buffers. `manner` is how it takes an edit."""

    def __init__(self, client: RawClient, root: Path, manner: str = "takes", **capabilities: Any) -> None:
        self.client, self.manner = client, manner
        self.buffers: dict[str, tuple[int, str]] = {}
        self.edits: list[dict[str, Any]] = []
        client.answers["workspace/applyEdit"] = self.apply
        folders = [{"uri": to_uri(root), "name": "root"}]
        self.encoding = client.initialize({**EDITING, **capabilities}, workspaceFolders=folders)["capabilities"][
            "positionEncoding"
        ]

    def open(self, path: Path, text: str, uri: str | None = None) -> str:
        uri = uri or to_uri(path)
        self.buffers[uri] = (1, text)
        document = {"uri": uri, "languageId": "text", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, text: str) -> None:
        version = self.buffers[uri][0] + 1
        self.buffers[uri] = (version, text)
        document = {"uri": uri, "version": version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def apply(self, params: dict[str, Any]) -> dict[str, Any]:
        edit = params["edit"]
        self.edits.append(edit)
        if self.manner == "refuses":
            return {"applied": False}
        for uri, version, edits in changes(edit):
            known, text = self.buffers[uri]
            if version not in (None, known):
                return {"applied": False}
            (only,) = edits
            lines = split_lines(text)
            start, end = (to_offset(lines, p["line"], p["character"], self.encoding) for p in only["range"].values())
            new = text[:start] + only["newText"] + text[end:]
            self.change(uri, new if self.manner == "takes" else new + "and more\n")
        return {"applied": True}

    def ask(self, prompt: str, **context: Any) -> dict[str, Any]:
        return self.client.call("lyma/ask", {"prompt": prompt, "context": context})

    def say(self, prompt: str, **context: Any) -> str:
        return self.ask(prompt, **context)["result"]["text"]


def changes(edit: dict[str, Any]) -> list[tuple[str, int | None, list[Any]]]:
    if "documentChanges" in edit:
        return [(c["textDocument"]["uri"], c["textDocument"]["version"], c["edits"]) for c in edit["documentChanges"]]
    return [(uri, None, edits) for uri, edits in edit["changes"].items()]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("workspace é ü")
    with RawClient() as client:
        yield Editor(client, root.resolve())


@pytest.fixture
def folder(editor: Editor, request: pytest.FixtureRequest) -> Path:
    root = Path(editor.say("root"))
    folder = root / request.node.name.translate(str.maketrans("[]", "()"))
    folder.mkdir()
    return folder


def test_a_dirty_buffer_beats_the_disk(editor: Editor, folder: Path) -> None:
    path = folder / "a b.py"
    path.write_text("on disk\n")
    uri = editor.open(path, "on disk\n")
    editor.change(uri, "in the buffer\n")
    assert editor.say(f"read {path}") == "True:in the buffer\n"
    path.write_text("changed on disk\n")
    assert editor.say(f"read {path}") == "True:in the buffer\n"


def test_a_buffer_that_was_restored_unsaved_is_dirty(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("on disk\n")
    editor.open(path, "never saved\n")
    assert editor.say(f"read {path}") == "True:never saved\n"


def test_a_clean_buffer_older_than_the_disk_loses(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("one\n")
    uri = editor.open(path, "one\n")
    editor.client.call("lyma/status")  # whether a buffer is clean is seen when it is opened
    path.write_text("two\n")
    assert editor.say(f"read {path}") == "False:two\n"
    editor.change(uri, "three\n")
    path.write_text("three\n")
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert editor.say(f"read {path}") == "True:three\n"
    path.write_text("two\n")
    assert editor.say(f"read {path}") == "False:two\n"


def test_a_closed_document_is_on_the_disk(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("one\n")
    uri = editor.open(path, "two\n")
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.say(f"read {path}") == "False:one\n"


@pytest.mark.parametrize(
    "write", [lambda uri: uri.replace("/a.py", "/%61.py"), lambda uri: uri.replace("file:///", "file://localhost/")]
)
def test_a_document_is_known_by_every_name(editor: Editor, folder: Path, write: Any) -> None:
    path = folder / "a.py"
    path.write_text("disk\n")
    uri = write(to_uri(path))
    editor.open(path, "buffer\n", uri)
    link = folder / "link.py"
    link.symlink_to(path)
    assert editor.say(f"read {path}") == "True:buffer\n"
    assert editor.say(f"read {link}") == "True:buffer\n"


def test_an_edit_of_an_open_file_goes_through_the_editor(editor: Editor, folder: Path) -> None:
    path = folder / "μ 漢😀.py"
    path.write_bytes("μ漢😀\r\nb\r\nc".encode())
    uri = editor.open(path, "μ漢😀\r\nb\r\nc")
    editor.change(uri, "μ漢😀\r\nB\r\nc")
    assert editor.say(f"edit {path}|B|new 😀") == "edited"
    assert editor.buffers[uri] == (3, "μ漢😀\r\nnew 😀\r\nc")
    assert path.read_bytes() == "μ漢😀\r\nb\r\nc".encode()
    assert editor.edits[-1]["documentChanges"][0]["textDocument"] == {"uri": uri, "version": 2}


def test_an_edit_of_a_closed_file_goes_to_the_disk(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_bytes(b"\xef\xbb\xbfone\r\n")
    assert editor.say(f"edit {path}|one|two") == "edited"
    assert path.read_bytes() == b"\xef\xbb\xbftwo\r\n"


@pytest.mark.parametrize("manner", ["refuses", "adds"])
def test_an_edit_that_did_not_arrive_is_a_conflict(
    editor: Editor, folder: Path, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor, "manner", manner)
    path = folder / "a.py"
    editor.open(path, "one\n")
    error = editor.ask(f"edit {path}|one|two")["error"]
    assert (error["code"], error["data"]["kind"]) == (-31014, "edit_conflict")


def ask_late(editor: Editor, prompt: str) -> int:
    """Ask, and wait until the file has been read."""
    start = len(editor.client.messages)
    identity = editor.client.request("lyma/ask", {"prompt": prompt})
    editor.client.wait_for(
        lambda found: found.get("method") == "lyma/event" and found["params"].get("text") == "read ", start=start
    )
    return identity


def test_a_stale_edit_changes_nothing(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    uri = editor.open(path, "one\n")
    identity = ask_late(editor, f"edit_late {path}|one|two")
    editor.change(uri, "one more\n")
    assert editor.client.reply(identity)["error"]["data"]["kind"] == "edit_conflict"
    assert editor.buffers[uri] == (2, "one more\n")


def test_a_buffer_that_is_closed_in_mid_turn_is_written_nowhere(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("disk\n")
    uri = editor.open(path, "disk\n")
    editor.change(uri, "buffer one\n")
    identity = ask_late(editor, f"edit_late {path}|one|two")
    seen = len(editor.edits)
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.client.reply(identity)["error"]["data"]["kind"] == "edit_conflict"
    assert path.read_text() == "disk\n"
    assert len(editor.edits) == seen


def test_an_answer_goes_on_when_its_buffer_is_closed(editor: Editor, folder: Path) -> None:
    uri = editor.open(folder / "a.py", "one\n")
    start = len(editor.client.messages)
    params = {"prompt": "flood 3", "context": {"active": {"uri": uri, "version": 1}}}
    identity = editor.client.request("lyma/ask", params)
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.client.reply(identity)["result"]["stopReason"] == "end_turn"
    told = [found for found in editor.client.messages[start:] if found.get("method", "").startswith("window/")]
    assert told == []


def test_an_editor_that_takes_no_edits_keeps_its_buffer(tmp_path: Path) -> None:
    with RawClient() as client:
        editor = Editor(client, tmp_path, workspace={})
        path = tmp_path / "a.py"
        uri = editor.open(path, "one\n")
        error = editor.ask(f"edit {path}|one|two")["error"]
        assert error["data"]["kind"] == "edit_conflict"
        assert editor.buffers[uri] == (1, "one\n")


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 9), ("utf-16", 4), ("utf-32", 3)])
def test_positions_are_told_in_characters(tmp_path: Path, encoding: str, character: int) -> None:
    with RawClient() as client:
        editor = Editor(client, tmp_path, general={"positionEncodings": ["klingon", encoding, "utf-16"]})
        assert editor.encoding == encoding
        uri = editor.open(tmp_path / "a.py", "\nμ漢😀a\n")
        place = {"line": 1, "character": character}
        selection = {"start": place, "end": {"line": 1, "character": 100}}
        assert editor.say("selections", active={"uri": uri, "selections": [selection]}) == "[(3, 4)]"


def test_parts_of_a_text_are_understood(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    uri = editor.open(path, "μ😀a\r\nb\u2028c\n")
    start = [{"line": 0, "character": 3}, {"line": 0, "character": 4}]
    end = [{"line": 1, "character": 2}, {"line": 1, "character": 3}]
    parts = [{"range": {"start": where[0], "end": where[1]}, "text": new} for where, new in ((start, "A"), (end, "C"))]
    editor.client.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": parts}
    )
    assert editor.say(f"read {path}") == "True:μ😀A\r\nb\u2028C\n"


def test_folders_come_and_go(editor: Editor, tmp_path: Path) -> None:
    folder = {"uri": to_uri(tmp_path), "name": "late"}
    active = {"uri": to_uri(tmp_path / "x.py")}
    assert editor.say("root", active=active) != str(tmp_path)
    editor.client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
    assert editor.say("root", active=active) == str(tmp_path)
    editor.client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}})
    assert editor.say("root", active=active) != str(tmp_path)


ANNOTATED = {
    "applyEdit": True,
    "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
}


def test_an_editor_that_can_asks_before_it_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawClient() as client:
        editor = Editor(client, tmp_path, workspace=ANNOTATED)
        path, closed = tmp_path / "a.py", tmp_path / "closed.py"
        closed.write_text("one\n")
        uri = editor.open(path, "one\n")
        assert editor.say(f"edit_confirmed {path}|one|two") == "True "
        (annotation,) = editor.edits[-1]["changeAnnotations"].values()
        assert annotation["needsConfirmation"] is True
        (edit,) = editor.edits[-1]["documentChanges"][0]["edits"]
        assert edit["annotationId"] in editor.edits[-1]["changeAnnotations"]
        assert editor.say(f"edit_confirmed {closed}|one|two") == "False "
        assert editor.say(f"edit {path}|two|three") == "edited"
        assert "changeAnnotations" not in editor.edits[-1]
        monkeypatch.setattr(editor, "manner", "refuses")
        error = editor.ask(f"edit_confirmed {path}|three|four")["error"]
        assert "did not agree" in error["message"]
        assert editor.buffers[uri][1] == "three\n"


def test_an_editor_that_cannot_does_not_ask(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    editor.open(path, "one\n")
    assert editor.say(f"edit_confirmed {path}|one|two") == "False "
    assert "changeAnnotations" not in editor.edits[-1]


def test_an_ask_about_another_version_is_refused_until_the_text_is_sent(editor: Editor, folder: Path) -> None:
    uri = editor.open(folder / "a.py", "one\n")
    selection = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    for context in (
        {"active": {"uri": uri, "version": 2, "selections": [selection]}},
        {"documents": [{"uri": uri, "version": 9}]},
    ):
        error = editor.ask("selections", **context)["error"]
        assert (error["code"], error["data"]["kind"], error["data"]["version"]) == (-31007, "document_out_of_sync", 1)
        assert error["data"]["retryable"] is True
    editor.change(uri, "two\n")
    active = {"uri": uri, "version": 2, "selections": [selection]}
    assert editor.say("selections", active=active, documents=[{"uri": uri, "version": 2}]) == "[(0, 3)]"
    other = {"uri": to_uri(folder / "not open.py"), "version": 7}
    assert editor.say("root", documents=[other])


def test_parts_of_a_text_that_never_came_are_not_taken_for_it(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("on disk\n")
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    part = {"textDocument": {"uri": to_uri(path), "version": 3}, "contentChanges": [{"range": place, "text": "x"}]}
    editor.client.notify("textDocument/didChange", part)
    assert editor.say(f"read {path}") == "False:on disk\n"


def test_an_open_file_is_deleted_only_where_nothing_is_lost(editor: Editor, folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("one\n")
    uri = editor.open(path, "one\n")
    editor.change(uri, "mine\n")
    assert editor.ask(f"delete {path}")["error"]["data"]["kind"] == "edit_conflict"
    assert path.exists()
    editor.change(uri, "one\n")
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert "result" in editor.ask(f"delete {path}")
    assert not path.exists()


def test_a_document_that_is_open_twice_is_open_until_both_are_closed(editor: Editor, folder: Path) -> None:
    path, link = folder / "a.py", folder / "link.py"
    path.write_text("one\n")
    link.symlink_to(path)
    real, linked = editor.open(path, "mine\n"), editor.open(link, "mine\n")
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": linked}})
    assert editor.say(f"read {path}") == "True:mine\n"
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": real}})
    assert editor.say(f"read {path}") == "False:one\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_clean_buffer_in_another_encoding_loses_to_a_newer_disk(editor: Editor, folder: Path, encoding: str) -> None:
    path = folder / "a.py"
    path.write_text("one\n", encoding)
    editor.open(path, "one\n")
    assert editor.say(f"read {path}") == "True:one\n"
    path.write_text("newer\n", encoding)
    assert editor.say(f"read {path}") == "False:newer\n"


def test_what_is_no_text_on_the_disk_is_none_in_a_buffer(editor: Editor, folder: Path) -> None:
    path = folder / "a.bin"
    path.write_bytes(b"one\n\0\n")
    editor.open(path, "one\n\0\n")
    assert editor.ask(f"edit {path}|one|two")["error"]
    assert editor.edits == [] or to_uri(path) not in str(editor.edits[-1])
