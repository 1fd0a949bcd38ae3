"""Sessions in an editor: what was shown live is what is replayed, and a turn is undone in buffers and on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.editor.features.positions import split_lines, to_offset
from lyma_server.editor.features.uris import to_uri
from tests.editors.real_server import COMMAND, settings
from tests.raw_client import RawClient
from tests.stub_provider import Reply, StubProvider, call_tool, cut, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EDITING = {
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "window": {"showDocument": {"support": True}},
}


def edit(path: str, old: str, new: str) -> Reply:
    return call_tool("edit_file", {"path": path, "edits": [{"old_text": old, "new_text": new}]})


class Editor:
    """An editor that shows `open.txt`, which it has not saved; `closed.txt` and `gone.txt` are on the disk."""

    def __init__(self, client: RawClient, root: Path) -> None:
        self.client, self.root = client, root
        self.text, self.version, self.edits = "mine\nopen one\n", 2, 0
        (root / "open.txt").write_text("open one\n")
        (root / "closed.txt").write_bytes(b"\xef\xbb\xbfclosed one\r\n")
        (root / "gone.txt").write_text("gone one\n")
        self.uri = to_uri(root / "open.txt")
        client.answers["workspace/applyEdit"] = self.apply
        client.answers["window/showDocument"] = lambda _params: {"success": True}
        client.initialize(EDITING, workspaceFolders=[{"uri": to_uri(root), "name": "root"}])
        document = {"uri": self.uri, "languageId": "text", "version": 1, "text": "open one\n"}
        client.notify("textDocument/didOpen", {"textDocument": document})
        self.tell()

    def tell(self) -> None:
        document = {"uri": self.uri, "version": self.version}
        change = {"textDocument": document, "contentChanges": [{"text": self.text}]}
        self.client.notify("textDocument/didChange", change)

    def apply(self, params: dict[str, Any]) -> dict[str, Any]:
        (change,) = params["edit"]["documentChanges"]
        (only,) = change["edits"]
        lines = split_lines(self.text)
        start, end = (to_offset(lines, p["line"], p["character"], "utf-16") for p in only["range"].values())
        self.text, self.version = self.text[:start] + only["newText"] + self.text[end:], self.version + 1
        self.edits += 1
        self.tell()
        return {"applied": True}

    def ask(self, prompt: str = "go", **params: Any) -> dict[str, Any]:
        reply = self.client.call("lyma/ask", {"prompt": prompt, **params})
        assert "result" in reply, reply
        return reply["result"]

    def disk(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.root.iterdir()}


TURN = [
    edit("open.txt", "open one", "open 1"),
    edit("closed.txt", "closed one", "closed 1"),
    call_tool("delete_file", {"path": "gone.txt"}),
    call_tool("write_file", {"path": "made.txt", "text": "made\n"}),
    cut("I was ", "about to "),
    say("All ", "done."),
]


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    root = (tmp_path / "wörk space").resolve()
    root.mkdir()
    with StubProvider(TURN) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        yield Editor(client, root)


def test_a_turn_is_replayed_as_it_was_shown_and_undone_where_it_was_made(editor: Editor) -> None:
    before = editor.disk()
    result = editor.ask()
    assert result["text"] == "All done."
    session = result["session"]
    live = editor.client.events()
    editor.client.messages.clear()
    editor.client.call("lyma/sessions", {"action": "load", "session": session})
    check_the_replay(live, editor.client.events())
    assert editor.text == "mine\nopen 1\n"
    assert editor.disk().keys() == {"open.txt", "closed.txt", "made.txt"}

    shown = editor.client.call("lyma/sessions", {"action": "diff", "session": session})["result"]
    assert shown["turn"] == result["turn"]
    assert " mine\n-open one\n+open 1\n" in shown["diff"]
    assert "--- /dev/null\n+++ b/made.txt" in shown["diff"]
    assert editor.disk()["open.txt"] == b"open one\n"

    before_undo = editor.edits
    undone = editor.client.call("lyma/sessions", {"action": "undo", "session": session})["result"]
    assert {each["uri"].rpartition("/")[2]: each["outcome"] for each in undone["files"]} == {
        "open.txt": "restored",
        "closed.txt": "restored",
        "gone.txt": "restored",
        "made.txt": "removed",
    }
    assert editor.text == "mine\nopen one\n"
    assert editor.edits == before_undo + 1
    assert editor.disk() == before


def check_the_replay(live: list[dict[str, Any]], replayed: list[dict[str, Any]]) -> None:
    """All but the deltas of completed items, which stand in these; numbered anew, without a gap."""
    assert [event["seq"] for event in live] == list(range(1, len(live) + 1))
    assert [event["seq"] for event in replayed] == list(range(1, len(replayed) + 1))
    assert all(event.pop("replay") for event in replayed)
    void = {event["item"] for event in live if event["type"] == "item.discarded"}
    said = "".join(event["text"] for event in live if event["type"] == "item.delta" and event["item"] in void)
    assert not any(event.get("replay") for event in live)
    assert without_deltas(replayed) == without_deltas(live)
    assert "".join(event["text"] for event in replayed if event["type"] == "item.delta") == said


def without_deltas(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, "seq": 0} for event in events if event["type"] != "item.delta"]


def test_an_editor_without_a_plugin_undoes_by_a_command(editor: Editor) -> None:
    before = editor.disk()
    editor.ask()
    shown = editor.client.call("workspace/executeCommand", {"command": "lyma.diff"})["result"]
    assert "+open 1" in shown["diff"]
    assert [found for found in editor.client.messages if found.get("method") == "window/showDocument"]
    undone = editor.client.call("workspace/executeCommand", {"command": "lyma.undo"})["result"]
    assert len(undone["files"]) == 4
    assert editor.disk() == before
    (message,) = [found["message"] for found in editor.client.notifications("window/showMessage")]
    assert message == "Undone: open.txt, closed.txt, gone.txt, made.txt"
    for arguments in (["zzzzzz"], [1], ["a", "b"], None):
        error = editor.client.call("workspace/executeCommand", {"command": "lyma.undo", "arguments": arguments})[
            "error"
        ]
        assert error["data"]["kind"] == "invalid_params"


def test_what_was_typed_since_is_not_clobbered(editor: Editor) -> None:
    session = editor.ask()["session"]
    editor.text, editor.version = editor.text + "typed since\n", editor.version + 1
    editor.tell()
    disk = editor.disk()
    error = editor.client.call("lyma/sessions", {"action": "undo", "session": session})["error"]
    assert error["data"]["kind"] == "edit_conflict"
    assert error["data"]["files"] == [{"uri": editor.uri, "reason": "It was changed since."}]
    assert editor.disk() == disk
    params = {"action": "undo", "session": session, "partial": True}
    undone = editor.client.call("lyma/sessions", params)["result"]
    assert sorted(each["outcome"] for each in undone["files"]) == ["kept", "removed", "restored", "restored"]
    assert editor.text.endswith("typed since\n")
    again = editor.client.call("lyma/sessions", {"action": "undo", "session": session})["error"]
    assert again["data"]["kind"] == "invalid_params"
