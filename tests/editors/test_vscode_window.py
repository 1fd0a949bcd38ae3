"""The packaged VS Code client in a real VS Code that a headless Chromium shows, with the real server and a scripted model."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.editors import vscode_package
from tests.editors.code_server import CLIENT, CodeServer, needs_terminal
from tests.editors.neovim import put_on_path
from tests.editors.project import Project, told
from tests.editors.real_server import last_words, settings
from tests.editors.stage_server import SHAPES
from tests.processes import LIMIT_S, descendants, wait_until_gone, words_of
from tests.raw_client import ROOT
from tests.stub_provider import Reply, Request, StubProvider, call_tool, fail, hang, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.full

STAGE = (sys.executable, str(ROOT / "tests" / "editors" / "stage_server.py"))
NONCE = "Qm9va3NoZWxm"
FIGURES = ("ms", "frames", "over", "worstFrame", "longest", "ran", "worstTasks", "elements", "heapMb")
TRUSTED = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "always"}


@pytest.fixture(scope="module")
def vsix() -> Path:
    return vscode_package.package()


@pytest.fixture
def stage(tmp_path: Path, vsix: Path) -> Iterator[CodeServer]:
    """VS Code on a server that does as the prompt says."""
    with CodeServer(tmp_path / "editor", {}, vsix=vsix, command=STAGE) as editor:
        yield editor


@pytest.fixture
def start(tmp_path: Path, vsix: Path) -> Iterator[Callable[..., CodeServer]]:
    """Start VS Code on the real server and a model that answers so."""
    opened: list[StubProvider | CodeServer] = []

    def open_editor(replies, variables=None, *, no_provider=False, **more) -> CodeServer:
        stub = StubProvider(replies).__enter__()
        opened.append(stub)
        house = settings(stub, tmp_path / "home")
        address = "LYMA_PROVIDERS__LOCAL__BASE_URL"
        given = {name: value for name, value in house.items() if not (no_provider and name == address)}
        given |= variables or {}
        editor = CodeServer(tmp_path / "editor", given, vsix=vsix, **more)
        editor.stub, editor.variables = stub, given
        opened.append(editor)
        return editor

    yield open_editor
    for each in reversed(opened):
        each.__exit__()


def edit_once(request: Request) -> Reply:
    """A model that changes a line, once in a turn."""
    if request.body["messages"][-1]["role"] == "tool":
        return say("Done.")
    return call_tool("edit_file", {"path": "a.txt", "edits": [{"old_text": "two", "new_text": "2 😀"}]})


def answer_suite(request: Request) -> Reply:
    """What the tests inside the extension host ask for."""
    words = last_words(request)
    if "wait for it" in words:
        return hang("still", " talking")
    return say(f"you said: {words[words.index('say') :][:10].strip()}\u202b") if "say" in words else edit_once(request)


def lyma_servers(editor: CodeServer) -> set[int]:
    assert editor.process is not None
    return {
        pid for pid in descendants(editor.process.pid) if b"lyma_server" in words_of(pid) or b"stage" in words_of(pid)
    }


def test_it_answers_stops_and_sends_what_is_selected(start) -> None:
    def answer(request: Request) -> Reply:
        return hang("never", " ending") if "first" in last_words(request) else say("**Hello** from the `stub`.")

    with start(answer) as editor:
        editor.write("a.py", "x = 1\n")
        stopped = editor.drive("ask", prompt="first", expect="never ending", stop=True, edit="a.py")
        answered = editor.drive("ask", prompt="second", expect="Hello from the stub.")
        keys = editor.drive("keyboard", prompt="first again", expect="never ending")
    assert stopped["stopMs"] < 2000
    assert "stub-model" in answered["bar"]["label"]
    assert "$" in answered["bar"]["text"]
    assert keys == {"log": "Conversation", "status": "Done.", "label": "Ask Lyma", "errors": []}
    assert answered["errors"] == stopped["errors"] == []
    assert "a.py" in str(editor.stub.requests[0].body["messages"])


def test_a_fallback_is_told(start) -> None:
    with StubProvider([fail(500)]) as broken:
        second = {
            "LYMA_ORDER": "broken,local",
            "LYMA_PROVIDERS__BROKEN__API": "openai",
            "LYMA_PROVIDERS__BROKEN__BASE_URL": broken.openai_url,
            "LYMA_PROVIDERS__BROKEN__MODEL": "other",
        }
        with start([say("from the second")], second) as editor:
            found = editor.drive("ask", prompt="hello", expect="from the second")
    assert "next provider" in found["text"]
    assert "local answered" in found["text"]


def test_an_edit_is_applied_and_undone(start) -> None:
    with start(edit_once) as editor:
        path = editor.write("a.txt", "one\ntwo\nthree\n")
        found = editor.drive("edit", file="a.txt", prompt="change it", before="two", after="2 😀")
    assert "2 😀" not in found["text"]
    assert path.read_text() == "one\ntwo\nthree\n"


def test_an_edit_to_confirm_waits_in_the_preview(start) -> None:
    with start(edit_once, {"LYMA_AGENT__CONFIRM": "edits"}) as editor:
        editor.write("a.txt", "one\ntwo\nthree\n")
        found = editor.drive("confirm", file="a.txt", prompt="change it", before="two", after="2 😀")
    assert "2 😀" in found["text"]


def test_it_holds_inside_the_extension_host(start, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    with start(answer_suite, {"SUITE_RESULT": str(results)}) as editor:
        editor.write("a.txt", "one\ntwo\n")
        editor.write(".lyma/agents/wrong/agent.toml", 'name = "x"\n')
        Project(editor.workspace)
        module = CLIENT / "test" / "host" / "suite.cjs"
        editor.drive("suite", suite={"extension": str(CLIENT), "module": str(module)})
    found = json.loads(results.read_text())
    assert len(found) >= 9
    assert set(found.values()) == {"ok"}, found


@pytest.mark.parametrize(
    ("press", "answer"),
    [
        ("Approve sha256:3f9a12cc04ee", {"approved": True, "hash": "HASH", "nonce": NONCE}),
        ("Reject", {"approved": False, "hash": "HASH", "nonce": NONCE}),
        (None, None),
    ],
)
def test_the_dialog_answers_as_it_was_pressed(stage: CodeServer, press: str | None, answer: object) -> None:
    import tests.editors.stage_server as script

    given = {} if press is None else {"press": press}
    found = stage.drive("approval", prompt="approval", expect="answer:", readFirst=press is not None, **given)
    written = json.dumps(answer, sort_keys=True).replace("HASH", script.HASH)
    assert f"answer: {written}" in found["text"]
    assert script.HASH in found["question"]
    assert "agent.txt" in found["tab"]
    log = "".join(path.read_text() for path in stage.data.rglob("*.log"))
    assert NONCE not in log


def test_only_what_is_approved_runs(start) -> None:
    project: list[Project] = []
    with start(lambda request: project[0].answer(request)) as editor:
        project.append(Project(editor.workspace))
        hash_ = project[0].compile(editor.variables)
        presses = ({}, {"press": "Reject"}, {"press": f"Approve {hash_[:19]}"})
        dismissed, rejected, approved = (
            editor.drive("approval", prompt="run it", expect="that was all", **press) for press in presses
        )
        results = [text for request in editor.stub.requests if (text := told(request))]
    assert hash_ in dismissed["question"]
    assert hash_ in rejected["question"]
    assert ["three files" in text for text in results[-1:]] == [True]
    assert not any("three files" in text for text in results[:-1])
    assert "Agent tidy" in approved["text"]


def test_the_first_delta_is_visible_at_once(stage: CodeServer) -> None:
    stamps = stage.drive("latency", count=20)["stamps"]
    assert len(stamps) == 20
    assert sorted(stamps)[len(stamps) // 2] < 150


def test_twenty_thousand_deltas_keep_the_view_responsive(stage: CodeServer) -> None:
    found = stage.drive("flood", prompts=["flood 20000"])["found"]["flood 20000"]
    print(f"20,000 deltas: {json.dumps({name: found[name] for name in FIGURES})}")  # shown with -s, and where it fails
    assert "The flood is over." in found["last"]
    assert found["below"] < 60
    assert found["codes"] == 20_000
    assert found["elements"] < 60_000
    assert found["heapMb"] < 300
    assert_responsive(found)


def test_an_answer_of_any_shape_keeps_the_view_responsive(stage: CodeServer) -> None:
    prompts = [f"flood 3000 {shape}" for shape in SHAPES]
    found = stage.drive("flood", prompts=prompts, redraw=True)["found"]
    for prompt in prompts:
        figures = found[prompt]
        print(f"{prompt}: {json.dumps({name: figures[name] for name in FIGURES})}")
        assert "The flood is over." in figures["last"], prompt
        assert figures["isAsDrawnAtOnce"], prompt
        assert_responsive(figures)


def assert_responsive(found: dict[str, Any]) -> None:
    """A frame of the page may take 100 ms, and others may have the processor for a part of that: this is what the page's
    thread itself ran for, the workbench in it included. How long the frames took by the clock depends on the machine.
    """
    assert found["ran"] > 20
    assert found["worstTasks"][0] < 100


def test_a_malicious_answer_is_inert(stage: CodeServer) -> None:
    found = stage.drive("attack", prompt="attack", expect="The attack is over.")
    assert set(found["elements"]) <= {
        "a", "blockquote", "code", "div", "em", "p", "pre", "span", "strong", "h1", "h2",
    }  # fmt: skip
    assert set(found["attributes"]) <= {"class", "data-language", "href", "title"}
    assert found["links"] == [
        "https://example.org/beacon2.png",
        "https://example.org/page",
        "https://example.org/page",
    ]  # a click away, as any link
    assert found["foreign"] == []
    assert found["hacked"] is None
    assert found["raw"] == [True, False, False]  # the tag is shown as text; no override of direction, no escape
    assert found["length"] > 1 << 20
    assert not found["wide"]
    assert found["errors"] == []


def test_a_malicious_message_is_inert(stage: CodeServer) -> None:
    found = stage.drive("notification", title="Lyma: Show Models", expect="Sign in")
    assert found["links"] == 0
    assert (
        found["text"]
        == "[Sign in] (command:workbench.action.terminal.new) or [here] (https://example.org/) [U+202E]<b>now</b>"
    )


def test_no_process_is_left_when_the_window_closes(start) -> None:
    with start([hang("still talking")]) as editor:
        closed = editor.drive("leave", prompt="hello", expect="still talking")["closed"]
        wait_until_gone(lyma_servers(editor))
        assert time.time() - closed / 1000 < LIMIT_S
        assert editor.stub.requests[0].closed.wait(2)


def test_a_reload_restores_the_conversation(start) -> None:
    with start(lambda request: say(f"you said {last_words(request)[:40]}")) as editor:
        found = editor.drive(
            "reload", prompt="first words", expect="you said", next="second words", then="second words"
        )
    assert found["draft"] == "a draft"
    assert found["text"].index("first words") < found["text"].index("second words")
    assert "first words" in str(editor.stub.requests[-1].body["messages"])


def test_a_crash_is_told_and_mended(stage: CodeServer) -> None:
    found = stage.drive("crash", prompt="crash", next="quote all is well", expect="all is well")
    assert "all is well" in found["text"]


def test_a_workspace_changes_no_setting(start, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    with start([say("the right server")]) as editor:
        editor.write(".vscode/settings.json", json.dumps({"lyma.server.path": str(trap)}))
        editor.write("bin/lyma-server", trap.read_text())
        editor.drive("ask", prompt="hello", expect="the right server")
    assert not (tmp_path / "sprung").exists()


def test_a_machine_setting_names_the_server(tmp_path: Path, vsix: Path) -> None:
    elsewhere = put_on_path(tmp_path, STAGE) / "lyma-server"
    machine = {"lyma.server.path": str(elsewhere)}
    with CodeServer(tmp_path / "editor", {}, vsix=vsix, command=None, machine=machine) as editor:
        editor.drive("ask", prompt="quote here", expect="here")


def test_nothing_starts_without_trust(start) -> None:
    with start([say("no")], profile=TRUSTED) as editor:
        found = editor.drive("untrusted", plain=True)
        assert not lyma_servers(editor)
    assert not [row for row in found["rows"] if "Lyma: Ask" in row]


def test_add_key_asks_in_a_terminal_and_the_next_ask_is_answered_with_it(start) -> None:
    needs_terminal()
    program = (sys.executable, "-c", "from lyma_server.entry import terminal; terminal()")
    with start([say("with the new key")], {"LYMA_ORDER": "local"}, no_provider=True) as editor:
        put_on_path(editor.folder, program, name="lyma")
        found = editor.drive("addKey", prompt="hello", address=editor.stub.openai_url, expect="with the new key")
    assert editor.stub.requests[-1].headers["authorization"] == "Bearer sk-pasted-unseen"
    assert "sk-pasted-unseen" not in found["page"] + found["text"]
    assert "sk-pasted-unseen" not in "".join(path.read_text() for path in editor.data.rglob("*.log"))


def test_the_button_of_the_message_installs_the_server(start) -> None:
    """Needs a package index."""
    with start([say("from the private environment")], command=None) as editor:
        found = editor.drive("install", prompt="hello", expect="from the private environment")
    assert "stub-model" in found["bar"]["label"]
