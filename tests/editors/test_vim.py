"""Vim 9 on a terminal with nothing but the recipe of docs/editors.md."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.editors.asking_server import HASH, LINES
from tests.editors.neovim import surroundings
from tests.editors.project import Project, told
from tests.editors.real_server import COMMAND, last_words, settings
from tests.processes import descendants, wait_for, wait_until_gone
from tests.pseudo_terminal import PseudoTerminal
from tests.raw_client import ROOT
from tests.security.world import BWRAPS
from tests.stub_provider import Reply, Request, StubProvider, call_tool, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ASKING = (sys.executable, "-m", "tests.editors.asking_server")

pytestmark = pytest.mark.skipif(shutil.which("vim") is None, reason="Vim is not installed")


class Vim(PseudoTerminal):
    def __init__(self, folder: Path, variables: Mapping[str, str], command: Sequence[str] = COMMAND) -> None:
        recipe = re.search(r"^```vim\n(.*?)^```", (ROOT / "docs" / "editors.md").read_text(), re.MULTILINE | re.DOTALL)
        assert recipe is not None
        (folder / "lyma.vim").write_text(recipe[1])
        self.root = folder / "root"
        self.root.mkdir(exist_ok=True)
        (self.root / "a b.txt").write_text("one\ntwo\nthree\n")
        self._state = folder / "state.txt"
        words = ["vim", "-Nu", "NONE", "-i", "NONE", "-n", "-S", str(folder / "lyma.vim"), "a b.txt"]
        env = {**surroundings(folder, variables, command), "LC_ALL": "C.UTF-8"}
        super().__init__(command=words, env=env, cwd=self.root)
        self.expect("three")
        self.command("set nomore columns=100 lines=30")

    def command(self, text: str) -> None:
        self.press(f":{text}\r")

    def transcript(self) -> str:
        """What the buffer of the transcript holds."""
        return self._look("bufexists('lyma') ? getbufline('lyma', 1, '$') : []")

    def buffer(self) -> str:
        """What the buffer that is edited holds."""
        return self._look("getline(1, '$')")

    def _look(self, lines: str) -> str:
        self._state.unlink(missing_ok=True)
        self.command(
            f"call writefile({lines}, '{self._state}.new') | call rename('{self._state}.new', '{self._state}')"
        )
        wait_for(self._drain_and_look)
        return self._state.read_text()

    def _drain_and_look(self) -> bool:
        self._read(time.monotonic() + 0.02)
        return self._state.exists()

    def wait_for_text(self, text: str) -> str:
        wait_for(lambda: text in self.transcript())
        return self.transcript()


def answer(request: Request) -> Reply:
    if "edit it" not in last_words(request):
        return Reply(text=("Hello", " from", "\nthe stub"), end="hang")
    if request.body["messages"][-1]["role"] == "tool":
        return say("all is refused" if "again" in last_words(request) else "all is edited")
    old, new = ("2", "two") if "again" in last_words(request) else ("two", "2")
    return call_tool("edit_file", {"path": "a b.txt", "edits": [{"old_text": old, "new_text": new}]})


def test_it_asks_streams_stops_and_edits(tmp_path: Path) -> None:
    with StubProvider(answer) as stub, Vim(tmp_path, settings(stub, tmp_path / "home")) as vim:
        vim.press("ccunsaved words\x1bV:LymaAsk stream\r")
        assert "\nHello from\nthe stub" in vim.wait_for_text("the stub")
        begun = time.monotonic()
        vim.command("LymaStop")
        vim.wait_for_text("(cancelled)")
        assert time.monotonic() - begun < 2
        sent = str(stub.requests[0].body["messages"])
        assert "unsaved words" in sent
        assert "<selection" in sent
        assert "three" not in sent
        vim.command("write")
        vim.command("LymaAsk edit it")
        vim.wait_for_text("(end_turn)")
        assert (vim.root / "a b.txt").read_text() == "unsaved words\n2\nthree\n"
        assert "> edited a b.txt" in vim.transcript()
        assert vim.buffer() == "unsaved words\n2\nthree\n", "the file was not read anew"
        vim.press("ccnot saved\x1b:LymaAsk edit it again\r")
        assert "> not edited a b.txt" in vim.wait_for_text("all is refused")
        assert vim.buffer() == "not saved\n2\nthree\n"
        told = str(stub.requests[-1].body["messages"][-1])
        assert f"{vim.root.resolve()}/a b.txt is open in an editor that takes no edits; save and close it" in told
        family = descendants(vim._process.pid)
        assert family
        vim.command("qa!")
        assert vim.leave() == 0
        assert wait_until_gone(family) < 3


def test_without_a_server_it_says_what_to_do(tmp_path: Path) -> None:
    with Vim(tmp_path, {}, ("no-such-program",)) as vim:
        vim.command("LymaAsk hello")
        vim.expect("put its folder on the PATH of Vim")
        assert "Error detected" not in vim.shown


@pytest.mark.parametrize(
    ("typed", "approved"), [("yes\r", True), ("no\r", False), ("\r", None), ("y\r", None), ("\x03", None)]
)
def test_only_a_typed_word_answers(tmp_path: Path, typed: str, approved: bool | None) -> None:
    with Vim(tmp_path, {}, ASKING) as vim:
        vim.command("LymaAsk approve")
        vim.expect("Type yes or no:")
        assert LINES[0].strip() in vim.shown
        assert HASH in vim.shown
        vim.press(typed)
        vim.expect("end_turn")  # what is typed right after a control and c is lost
        shown = vim.wait_for_text("(end_turn)")
        answers = json.loads(next(line for line in shown.splitlines() if line.startswith("[")))
        expected = None if approved is None else {"hash": HASH, "nonce": "nonce-1", "approved": approved}
        assert answers == [expected]


@pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
def test_only_what_is_approved_runs(tmp_path: Path) -> None:
    project = Project(tmp_path / "root")
    with StubProvider(project.answer) as stub:
        variables = settings(stub, tmp_path / "home")
        hash_ = project.compile(variables)
        with Vim(tmp_path, variables) as vim:
            for number, typed in enumerate(("", "no", "yes"), 1):
                vim.command("LymaAsk run the agent")
                vim.expect("Type yes or no:")
                assert hash_ in vim.shown
                vim.press(f"{typed}\r")
                wait_for(lambda number=number: vim.transcript().count("(end_turn)") == number)
        results = [text for request in stub.requests if (text := told(request))]
    assert ["three files" in text for text in results] == [False, False, True]
