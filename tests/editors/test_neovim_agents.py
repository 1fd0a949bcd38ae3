"""Agents from within Neovim, with the real server and sandbox: compiled, approved or not, and run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.editors.neovim import Neovim
from tests.editors.project import Project, told
from tests.editors.real_server import last_words, settings
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

SELECT = """
_G.prompts = {}
vim.ui.select = function(items, options, on_choice)
  table.insert(_G.prompts, { items = items, title = options.prompt })
  _G.choose = on_choice
end
"""
APPROVE, REJECT, DISMISS = 3, 2, None


class Desk:
    """Neovim in a project that has an agent."""

    def __init__(self, folder: Path) -> None:
        (folder / "editor").mkdir()
        self.project = Project(folder / "editor" / "root")
        self.stub = StubProvider(self.project.answer).__enter__()
        self.nvim = Neovim(folder / "editor", settings(self.stub, folder / "home"))
        self.nvim.lua(SELECT)

    @property
    def hash(self) -> str:
        return self.project.hash

    def compile(self) -> None:
        self.nvim.press(":LymaCompile tidy<CR>")
        old = self.hash
        self.nvim.wait_for(lambda: (found := self.hashes()) and found[-1] != old, "the hash")
        self.project.hash = self.hashes()[-1]

    def hashes(self) -> list[str]:
        return re.findall(r"sha256:[0-9a-f]{64}", self.nvim.messages())

    def asked(self, number: int = 1) -> str:
        """The title of the prompt."""
        self.nvim.wait_for(lambda: self.nvim.lua("return #_G.prompts") >= number, "the prompt")
        return self.nvim.lua("return _G.prompts[#_G.prompts].title")

    def choose(self, index: int | None) -> None:
        self.nvim.lua("local choose, index = _G.choose, ...; choose(nil, index ~= vim.NIL and index or nil)", index)

    def approved(self) -> list[str]:
        code = 'return vim.lsp.get_clients({ name = "lyma" })[1]:request_sync("lyma/approve", { action = "list" }, 10000).result'
        return [each["hash"] for each in self.nvim.lua(code)["approvals"]]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with made.nvim:
        yield made
    made.stub.__exit__()


@pytest.mark.parametrize(("choice", "runs"), [(APPROVE, True), (REJECT, False), (DISMISS, False)])
def test_only_what_is_approved_runs(desk: Desk, choice: int | None, runs: bool) -> None:
    desk.compile()
    desk.nvim.press(":LymaAsk run the agent<CR>")
    assert desk.hash in desk.asked()
    assert desk.approved() == []
    desk.choose(choice)
    shown = desk.nvim.wait_for_text("that was all")
    assert desk.approved() == ([desk.hash] if runs else [])
    assert ("three files" in told(desk.stub.requests[-1])) is runs
    assert (f"approved** {desk.hash}" in shown) is runs
    if runs:
        desk.nvim.press(":LymaAsk run it again<CR>")
        desk.nvim.wait_for(lambda: desk.nvim.transcript().count("that was all") == 2)
        assert desk.nvim.lua("return #_G.prompts") == 1


def test_an_approval_is_for_the_content_that_was_shown(desk: Desk) -> None:
    desk.compile()
    desk.nvim.press(":LymaAsk run the agent<CR>")
    first = desk.hash
    desk.asked()
    desk.project.write(purpose="Something else altogether")
    desk.compile()
    desk.choose(APPROVE)
    desk.nvim.wait_for_text("that was all")
    assert desk.approved() == [first]
    desk.nvim.press(":LymaAsk run the agent<CR>")
    assert desk.hash in desk.asked(2)
    desk.choose(REJECT)
    desk.nvim.wait_for(lambda: desk.nvim.transcript().count("that was all") == 2)
    assert desk.approved() == [first]


def test_a_yes_that_comes_after_the_turn_was_stopped_approves_nothing(desk: Desk) -> None:
    desk.compile()
    desk.nvim.press(":LymaAsk run the agent<CR>")
    desk.asked()
    desk.nvim.press(":LymaStop<CR>")
    desk.nvim.wait_for_text("*cancelled")
    desk.choose(APPROVE)
    assert desk.approved() == []


def test_an_agent_is_approved_and_run_by_name(desk: Desk) -> None:
    desk.compile()
    desk.nvim.press(":LymaApprove tidy<CR>")
    assert desk.hash in desk.asked()
    desk.choose(APPROVE)
    desk.nvim.wait_for(lambda: desk.approved() == [desk.hash])
    desk.nvim.press(":LymaRun tidy count them<CR>")
    shown = desk.nvim.wait_for_text("three files")
    assert "## tidy count them" in shown
    assert "count them" in last_words(desk.stub.requests[-1])
    desk.nvim.press(":LymaAgents<CR>")
    desk.asked(2)
    desk.nvim.lua("_G.choose(_G.prompts[2].items[1])")
    desk.nvim.wait_for(lambda: any(desk.hash in line for line in desk.nvim.lines()))


def test_running_one_by_name_that_waits_asks_first(desk: Desk) -> None:
    desk.compile()
    desk.nvim.press(":LymaRun tidy count them<CR>")
    assert desk.hash in desk.asked()
    desk.choose(APPROVE)
    desk.nvim.wait_for_text("three files")
    assert desk.approved() == [desk.hash]


def test_mistakes_are_listed_where_they_are(desk: Desk) -> None:
    desk.project.write(budget__max_turns=-1)
    desk.nvim.press(":LymaCompile tidy<CR>")
    found = desk.nvim.wait_for(lambda: desk.nvim.call("nvim_eval", "getqflist()"), "the list of mistakes")
    assert "max_turns" in found[0]["text"]
    assert found[0]["lnum"] > 1
    assert desk.nvim.call("nvim_eval", "bufname(getqflist()[0].bufnr)").endswith(".lyma/agents/tidy/agent.toml")
