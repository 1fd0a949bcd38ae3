"""Editors by the capabilities that they really send: what each is offered, and how each is spoken to.

tests/data/capabilities/ says where each was recorded or from what it was reconstructed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lyma_server.editor.features.positions import split_lines, to_offset
from lyma_server.editor.features.uris import to_uri
from tests.editors.real_server import COMMAND, last_words, settings
from tests.raw_client import RawClient
from tests.stub_provider import Reply, Request, StubProvider, call_tool, hang, say

FOLDER = Path(__file__).parents[1] / "data" / "capabilities"
EDITORS = sorted(path.stem for path in FOLDER.glob("*.json"))
TEXT = "μ = 1\nprint(μ😀\nlast"
FENCED = "Here:\n```python\nprint(μ)\n```\n"


def capabilities(editor: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{editor}.json").read_text(encoding="utf-8"))["capabilities"]


def answer(request: Request) -> Reply:
    said = json.dumps(request.body["messages"], ensure_ascii=False)
    if "one fenced block" in said:
        return say("no block" if "unhelpful" in said else FENCED)
    if "Change the file itself" in said and request.body["messages"][-1]["role"] != "tool":
        return call_tool("edit_file", {"path": "a b.py", "edits": [{"old_text": "print(μ😀", "new_text": "print(μ)"}]})
    return say(f"Done: {last_words(request)[:20]}")


class Plain:
    """An editor with the capabilities of a real one, and no plugin for Lyma."""

    def __init__(self, client: RawClient, editor: str, root: Path) -> None:
        self.client = client
        self.uri = to_uri(root / "a b.py")
        self.text, self.version = TEXT, 1
        self.edits: list[Any] = []
        folder = {"uri": to_uri(root), "name": "root"}
        offered = client.initialize(capabilities(editor), workspaceFolders=[folder])["capabilities"]
        self.encoding = offered["positionEncoding"]
        self.offered = offered
        client.answers["workspace/applyEdit"] = self.apply
        client.answers["window/workDoneProgress/create"] = lambda _params: None
        client.answers["window/showDocument"] = lambda _params: {"success": True}
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": TEXT}
        client.notify("textDocument/didOpen", {"textDocument": document})

    def apply(self, params: dict[str, Any]) -> dict[str, Any]:
        self.edits.append(params["edit"])
        self.take(params["edit"])
        return {"applied": True}

    def take(self, edit: dict[str, Any]) -> None:
        for change in edit.get("documentChanges", ()):
            assert change["textDocument"] == {"uri": self.uri, "version": self.version}
        (only,) = edit["documentChanges"][0]["edits"] if "documentChanges" in edit else edit["changes"][self.uri]
        lines = split_lines(self.text)
        start, end = (to_offset(lines, p["line"], p["character"], self.encoding) for p in only["range"].values())
        self.change(self.text[:start] + only["newText"] + self.text[end:])

    def change(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def actions(self, *, only: list[str] | None = None, message: str = "'(' was never closed") -> list[dict[str, Any]]:
        place = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 5}}
        context = {"diagnostics": [{"range": place, "message": message, "severity": 1}]}
        context |= {} if only is None else {"only": only}
        params = {"textDocument": {"uri": self.uri}, "range": place, "context": context}
        reply = self.client.call("textDocument/codeAction", params)
        assert "result" in reply, reply
        return reply["result"]


@pytest.fixture(params=EDITORS)
def editor(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    root = (tmp_path / "wörk space").resolve()
    root.mkdir()
    (root / "a b.py").write_text(TEXT)
    with StubProvider(answer) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        plain = Plain(client, request.param, root)
        plain.name, plain.home = request.param, tmp_path / "home"
        yield plain


def test_the_five_are_there() -> None:
    assert EDITORS == ["eglot", "helix", "neovim", "vim_lsp", "vscode"]
    for editor in EDITORS:
        assert json.loads((FOLDER / f"{editor}.json").read_text())["source"].startswith(("Recorded", "Re", "Computed"))


def test_each_editor_asks_fixes_and_edits(editor: Plain) -> None:
    """One server an editor: a command, both actions, and how they were shown."""
    expected = {"vscode": "utf-16", "neovim": "utf-8", "eglot": "utf-16", "helix": "utf-8", "vim_lsp": "utf-16"}
    assert editor.encoding == expected[editor.name]
    check_the_answer_is_shown(editor)
    fix, rewrite = editor.actions()
    assert fix["title"] == "Fix with Lyma: '(' was never closed"
    assert rewrite["title"] == "Rewrite the selection with Lyma"
    assert [action["kind"] for action in (fix, rewrite)] == ["quickfix.lyma", "refactor.rewrite.lyma"]
    assert [each["kind"] for each in editor.actions(only=["quickfix"])] == ["quickfix.lyma"]
    assert editor.actions(only=["refactor.rew"]) == []
    if editor.name in {"vscode", "neovim", "helix"}:
        check_an_action_is_resolved(editor, fix)
    else:
        check_an_action_is_a_command(editor, rewrite)
    versioned = editor.name != "vim_lsp"
    assert editor.edits
    assert all(("documentChanges" in edit) is versioned for edit in editor.edits)


def check_the_answer_is_shown(editor: Plain) -> None:
    client = editor.client
    reply = client.call("workspace/executeCommand", {"command": "lyma.ask", "arguments": ["hello"]})
    assert reply["result"]["text"] == "Done: hello"
    shown = [found["params"]["uri"] for found in client.messages if found.get("method") == "window/showDocument"]
    told = [found["message"] for found in client.notifications("window/showMessage")]
    if editor.name in {"vscode", "neovim"}:
        assert len(shown) == 1
        assert "Done: hello" in next((editor.home / "transcripts").glob("*.md")).read_text()
        assert told == []
    else:
        assert (shown, told) == ([], ["Done: hello"])
    progress = [found["value"]["kind"] for found in client.notifications("$/progress")]
    if editor.name in {"vscode", "neovim", "helix"}:
        assert (progress[0], progress[-1]) == ("begin", "end")
    else:
        assert progress == []
    assert not client.events()


def check_an_action_is_resolved(editor: Plain, action: dict[str, Any]) -> None:
    assert "edit" not in action
    assert "command" not in action
    before = editor.text
    resolved = editor.client.call("codeAction/resolve", action)["result"]
    assert {**resolved, "edit": None} == {**action, "edit": None}
    assert editor.text == before
    editor.edits.append(resolved["edit"])
    editor.take(resolved["edit"])
    assert editor.text == "print(μ)"
    stale = editor.client.call("codeAction/resolve", action)["error"]
    assert stale["code"] == -32801
    (fix, _) = editor.actions(message="unhelpful")
    assert "without a text" in editor.client.call("codeAction/resolve", fix)["error"]["message"]
    for data in (None, {}, {"lyma": {}}, {"lyma": {**fix["data"]["lyma"], "first": -1}}):
        assert editor.client.call("codeAction/resolve", {**fix, "data": data})["error"]["code"] == -32602


def check_an_action_is_a_command(editor: Plain, action: dict[str, Any]) -> None:
    command = action["command"]
    del command["title"]
    assert editor.client.call("workspace/executeCommand", command)["result"]["edits"]
    assert editor.text == TEXT.replace("print(μ😀", "print(μ)")


def test_a_refused_progress_is_not_reported(tmp_path: Path) -> None:
    with StubProvider(answer) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        client.initialize(capabilities("helix"))
        identity = client.request("workspace/executeCommand", {"command": "lyma.ask", "arguments": ["hello"]})
        asked = client.wait_for(lambda found: found.get("method") == "window/workDoneProgress/create")
        error = {"code": -32601, "message": "no"}
        client.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        assert client.reply(identity)["result"]["text"] == "Done: hello"
        assert client.notifications("$/progress") == []


def test_a_resolve_that_is_cancelled_says_so(tmp_path: Path) -> None:
    with StubProvider([hang("x")]) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        editor = Plain(client, "vscode", tmp_path)
        (fix, _) = editor.actions()
        identity = client.request("codeAction/resolve", fix)
        stub.wait_for_request()
        client.notify("$/cancelRequest", {"id": identity})
        assert client.reply(identity)["error"]["code"] == -32800
        assert stub.requests[0].closed.wait(5)


def test_the_stop_button_of_a_progress_that_we_brought_stops_the_turn(tmp_path: Path) -> None:
    with StubProvider([hang("Once upon")]) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        client.initialize(capabilities("helix"))
        client.answers["window/workDoneProgress/create"] = lambda _params: None
        identity = client.request("workspace/executeCommand", {"command": "lyma.ask", "arguments": ["hello"]})
        begun = client.wait_for(lambda found: found.get("method") == "$/progress")["params"]
        assert (begun["value"]["kind"], begun["value"]["cancellable"]) == ("begin", True)
        stub.wait_for_request()
        client.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
        assert client.reply(identity)["result"]["stopReason"] == "cancelled"
        assert stub.requests[0].closed.wait(5)


def test_whatever_else_a_diagnostic_says_comes_back_with_its_fix(tmp_path: Path) -> None:
    with RawClient(COMMAND, env={"LYMA_HOME": str(tmp_path / "home")}) as client:
        editor = Plain(client, "vscode", tmp_path)
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        related = [{"location": {"uri": editor.uri, "range": place}, "message": "here"}]
        for code in (5, "E501"):
            diagnostic = {
                "range": place, "message": "many\nlines", "severity": 2, "code": code, "source": "x", "tags": [1],
                "codeDescription": {"href": "https://example.com"}, "relatedInformation": related, "data": {"a": [1, None]},
            }  # fmt: skip
            context = {"diagnostics": [diagnostic], "only": ["quickfix", "source.fixAll.other"], "triggerKind": 1}
            params = {"textDocument": {"uri": editor.uri}, "range": place, "context": context}
            (fix,) = client.call("textDocument/codeAction", params)["result"]
            assert fix["diagnostics"] == [diagnostic]
            assert fix["title"] == "Fix with Lyma: many"


def test_the_oldest_of_clients_gets_commands(tmp_path: Path) -> None:
    with StubProvider(answer) as stub, RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        bare = Plain.__new__(Plain)
        bare.client, bare.uri = client, to_uri(tmp_path / "a.py")
        client.initialize({"workspace": {"applyEdit": True}})
        assert bare.actions() == []
        document = {"uri": bare.uri, "languageId": "python", "version": 1, "text": TEXT}
        client.notify("textDocument/didOpen", {"textDocument": document})
        assert {action["command"] for action in bare.actions()} == {"lyma.ask"}
