"""agent.toml in any LSP editor, over real pipes: the compiler's word as you type, and the road from a lens to a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent_house import PLAIN, SHOWN, House, press
from tests.agent_script import NAME, SPEC, script
from tests.agents import FILES, document, text_of
from tests.security.world import BWRAPS, LINUX

pytestmark = LINUX
WORDY = text_of(document(purpose="Größe 🎉"))


class Buffer:
    """An agent.toml in the editor."""

    def __init__(self, house: House) -> None:
        self.house, self.version = house, 0
        self.path = house.write_spec()
        self.uri = self.path.as_uri()

    def show(self, text: str) -> None:
        self.version += 1
        if self.version == 1:
            item = {"uri": self.uri, "languageId": "toml", "version": 1, "text": text}
            self.house.client.notify("textDocument/didOpen", {"textDocument": item})
        else:
            identity = {"uri": self.uri, "version": self.version}
            self.house.client.notify(
                "textDocument/didChange", {"textDocument": identity, "contentChanges": [{"text": text}]}
            )

    def diagnostics(self, uri: str | None = None) -> list[dict[str, Any]]:
        """What is said of the text as it is shown now."""

        def is_it(message: dict[str, Any]) -> bool:
            if message.get("method") != "textDocument/publishDiagnostics":
                return False
            return message["params"]["uri"] == self.uri and message["params"].get("version") == self.version

        self.house.client.wait_for(is_it)
        found = self.house.client.notifications("textDocument/publishDiagnostics")
        return [params for params in found if params["uri"] == (uri or self.uri)][-1]["diagnostics"]

    def ask(self, what: str, line: int, character: int) -> Any:
        params = {"textDocument": {"uri": self.uri}, "position": {"line": line, "character": character}}
        return self.house.result(f"textDocument/{what}", **params)

    def lenses(self) -> dict[str, Any]:
        found = self.house.result("textDocument/codeLens", textDocument={"uri": self.uri})
        return {lens["command"]["title"]: lens["command"] for lens in found}

    def press(self, title: str) -> Any:
        command = self.lenses()[title]
        return self.house.result("workspace/executeCommand", **{k: command[k] for k in ("command", "arguments")})


@pytest.fixture
def house(tmp_path):
    with House(tmp_path, script) as house:
        yield house


@pytest.fixture
def buffer(house):
    house.start(PLAIN, show=SHOWN, prompt=press("Approve"))
    return Buffer(house)


def line_with(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.split("\n")) if words in line)


def test_the_compiler_speaks_as_one_types(buffer):
    buffer.show(SPEC)
    assert buffer.diagnostics() == []
    wrong = SPEC.replace("max_turns = 12", "max_turns = 0").replace("fs.write", "fs.wriet")
    for text in ("lyma_agent = ", "lyma_agent = 1", wrong):
        buffer.show(text)
    tool, turns = buffer.diagnostics()
    assert (tool["code"], tool["source"], tool["severity"]) == ("unknown_tool", "lyma", 1)
    assert "did you mean fs.write?" in tool["message"]
    assert turns["range"]["start"] == {"line": line_with(wrong, "max_turns = 0"), "character": 0}
    assert turns["range"]["end"]["character"] == len("max_turns = 0")
    buffer.show(SPEC)
    assert buffer.diagnostics() == []
    buffer.show("lyma_agent = 2")
    assert buffer.diagnostics()
    buffer.house.client.notify("textDocument/didClose", {"textDocument": {"uri": buffer.uri}})
    buffer.house.client.wait_for(
        lambda m: m.get("params") == {"uri": buffer.uri, "diagnostics": []} and "version" not in m["params"]
    )


def test_what_is_wrong_with_a_tool_stands_in_its_file(buffer):
    folder = buffer.path.parent
    text = WORDY.decode()
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    (folder / "tools/count.py").write_text("import json\nimport requests\n\n\ndef run(args):\n    return 1\n")
    (folder / "schema/output.json").unlink()
    buffer.show(text)
    [missing] = buffer.diagnostics()
    assert (missing["code"], missing["range"]["start"]["line"]) == ("missing_file", line_with(text, "output.json"))
    (folder / "schema/output.json").write_text(FILES["schema/output.json"])
    code = (folder / "tools/count.py").as_uri()
    buffer.show(text + "\n")
    assert buffer.diagnostics() == []
    [imported] = buffer.diagnostics(code)
    assert imported["range"]["start"]["line"] == 1
    (folder / "tools/count.py").write_text(FILES["tools/count.py"])
    seen = len(buffer.house.client.messages)
    buffer.house.client.notify("textDocument/didSave", {"textDocument": {"uri": code}})
    buffer.house.client.wait_for(lambda m: m.get("params") == {"uri": code, "diagnostics": []}, start=seen)


def test_hover_completion_and_symbols_count_as_the_client_does(buffer):
    text = 'lyma_agent = 1\npurpose = "🎉🎉" # max\n[budget]\nmax_turns = 1\n\n[tools]\nallow = ["🎉", "fs.r"]\n'
    buffer.show(text)
    found = buffer.ask("hover", 3, 3)
    assert "Model calls." in found["contents"]["value"]
    assert found["range"] == {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 9}}
    assert buffer.ask("hover", 4, 0) is None
    labels = {item["label"]: item for item in buffer.ask("completion", 4, 0)}
    assert labels["wall_s"]["textEdit"]["newText"] == "wall_s = 180"
    tools = {item["label"]: item["textEdit"] for item in buffer.ask("completion", 6, 20)}
    assert tools["fs.read"]["range"]["start"] == {"line": 6, "character": 15}
    symbols = buffer.house.result("textDocument/documentSymbol", textDocument={"uri": buffer.uri})
    assert [each["name"] for each in symbols] == ["lyma_agent", "purpose", "budget", "max_turns", "tools", "allow"]


def test_other_documents_are_left_alone(house):
    house.start(PLAIN)
    uri = (house.root / "agent.toml").as_uri()
    item = {"uri": uri, "languageId": "toml", "version": 1, "text": "[agent]\ninterval = 3\n"}
    house.client.notify("textDocument/didOpen", {"textDocument": item})
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 1}}
    for method in ("hover", "completion", "documentSymbol", "codeLens"):
        assert (
            house.result(
                f"textDocument/{method}",
                **place if method in {"hover", "completion"} else {"textDocument": {"uri": uri}},
            )
            is None
        )
    assert house.client.notifications("textDocument/publishDiagnostics") == []


@pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
def test_from_a_lens_to_a_run(buffer):
    """Written, compiled, approved and run by an editor that has never heard of Lyma."""
    house = buffer.house
    buffer.show(SPEC)
    assert list(buffer.lenses()) == ["Compile"]
    compiled = buffer.press("Compile")
    hash_ = compiled["hash"]
    approve = f"Approve {hash_[:13]}…"
    assert list(buffer.lenses()) == ["Compile", approve]
    nowhere = {"line": 0, "character": 0}
    place = {"textDocument": {"uri": buffer.uri}, "range": {"start": nowhere, "end": nowhere}}
    actions = house.result("textDocument/codeAction", **place, context={"diagnostics": []})
    assert [action["title"] for action in actions] == ["Compile", approve]
    assert house.result("textDocument/codeAction", **place, context={"diagnostics": [], "only": ["quickfix"]}) == []
    house.answer(show=SHOWN, prompt=None)
    command = {"command": "lyma.approve", "arguments": [hash_]}
    assert house.kind("workspace/executeCommand", **command) == "approval_unavailable"
    house.answer(show=SHOWN, prompt=press("Approve"))
    assert buffer.press(approve) == {"state": "approved"}
    assert list(buffer.lenses()) == ["Compile", "Run"]
    ended = buffer.press("Run")["result"]
    assert ended.get("error") is None
    assert (ended["status"], ended["output"]) == ("ok", {"text": "One line was added."})
    assert (house.root / "CHANGELOG.md").read_text() == "old\nnew\n"
    shown = house.asked[-1]["uri"].removeprefix("file://")
    with open(shown, encoding="utf-8") as file:
        assert "One line was added." in file.read()
    buffer.show(SPEC.replace("Read the", "Reed the"))
    assert list(buffer.lenses()) == ["Compile"]


def test_commands_say_what_they_need(house):
    house.start({})
    wrong = [
        ("lyma.approve", [], "invalid_params"),
        ("lyma.approve", ["sha256:000000"], "invalid_params"),
        ("lyma.approve", [{"hash": "x", "odd": 1}], "invalid_params"),
        ("lyma.reject", ["x", "y", "z"], "invalid_params"),
        ("lyma.run_compiled_agent", [3], "invalid_params"),
        ("lyma.compile_agent", ["nothing"], "invalid_params"),
        ("lyma.draft_agent", [], "invalid_params"),
    ]
    for command, arguments, kind in wrong:
        found = house.kind("workspace/executeCommand", command=command, arguments=arguments)
        assert found == kind, (command, arguments)
    house.write_spec(SPEC.replace("max_turns = 12", "max_turns = 0"))
    reply = house.result("workspace/executeCommand", command="lyma.compile_agent", arguments=[NAME])
    assert reply["diagnostics"][0]["path"] == "budget.max_turns"
    told = house.client.notifications("window/showMessage")[-1]
    assert (told["type"], "does not compile" in told["message"]) == (1, True)
