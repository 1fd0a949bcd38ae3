"""The person is shown an agent and asked: what Neovim shows, and what it answers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.editors.asking_server import HASH, LINES
from tests.editors.neovim import Neovim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKING = (sys.executable, "-m", "tests.editors.asking_server")
SELECT = """
_G.prompts = {}
vim.ui.select = function(items, options, on_choice)
  table.insert(_G.prompts, { items = items, title = options.prompt })
  _G.choose = on_choice
end
"""
WINDOWS = """
local found = {}
for _, window in ipairs(vim.api.nvim_list_wins()) do
  local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
  found[#found + 1] = table.concat(lines, "\\n")
end
return found
"""


@pytest.fixture
def nvim(tmp_path: Path) -> Iterator[Neovim]:
    with Neovim(tmp_path / "editor", {}, command=ASKING) as editor:
        editor.lua(SELECT)
        yield editor


def asked(nvim: Neovim, number: int = 1) -> dict:
    nvim.wait_for(lambda: nvim.lua("return #_G.prompts") >= number, "the prompt")
    return nvim.lua("return _G.prompts[#_G.prompts]")


def choose(nvim: Neovim, index: int | None) -> None:
    nvim.lua("local choose, index = _G.choose, ...; choose(nil, index ~= vim.NIL and index or nil)", index)


def answers(nvim: Neovim) -> list:
    shown = nvim.wait_for_text("done · 1 in")
    return json.loads(next(line for line in shown.splitlines() if line.startswith("[")))


def manifest_is_shown(nvim: Neovim) -> bool:
    return any(LINES[-1] in text for text in nvim.lua(WINDOWS))


def test_the_manifest_is_shown_before_the_question_and_approved(nvim: Neovim) -> None:
    nvim.press(":LymaAsk approve<CR>")
    prompt = asked(nvim)
    assert manifest_is_shown(nvim)
    assert HASH in prompt["title"]
    assert prompt["items"] == ["Read it first", "Reject", f"Approve sha256:{HASH[7:19]}"]
    assert any("asked by root-run › tidy" in text for text in nvim.lua(WINDOWS))
    choose(nvim, 3)
    assert answers(nvim) == [{"hash": HASH, "nonce": "nonce-1", "approved": True}]
    assert not manifest_is_shown(nvim)


@pytest.mark.parametrize(
    ("index", "answer"), [(2, {"hash": HASH, "nonce": "nonce-1", "approved": False}), (None, None)]
)
def test_rejected_is_no_and_dismissed_is_nothing(nvim: Neovim, index: int | None, answer: object) -> None:
    nvim.press(":LymaAsk approve<CR>")
    asked(nvim)
    choose(nvim, index)
    assert answers(nvim) == [answer]


def test_it_can_be_read_first_and_answered_later(nvim: Neovim) -> None:
    nvim.press(":LymaAsk approve<CR>")
    asked(nvim)
    choose(nvim, 1)
    assert manifest_is_shown(nvim)
    nvim.press("G<CR>")
    asked(nvim, 2)
    choose(nvim, 1)
    nvim.press("<C-w>w:LymaApprove<CR>")
    asked(nvim, 3)
    choose(nvim, 3)
    assert answers(nvim)[0]["approved"] is True


def test_closing_the_window_answers_nothing(nvim: Neovim) -> None:
    nvim.press(":LymaAsk approve<CR>")
    asked(nvim)
    choose(nvim, 1)
    nvim.press(":close<CR>")
    assert answers(nvim) == [None]


def test_a_question_that_was_withdrawn_is_closed_and_a_late_yes_goes_nowhere(nvim: Neovim) -> None:
    nvim.press(":LymaAsk withdraw<CR>")
    assert answers(nvim) == [None]
    if nvim.lua("return #_G.prompts") > 0:
        choose(nvim, 3)
    assert not manifest_is_shown(nvim)
    assert "withdrawn" in nvim.transcript()


def test_each_question_is_answered_with_its_own_nonce(nvim: Neovim) -> None:
    nvim.press(":LymaAsk twice<CR>")
    asked(nvim)
    choose(nvim, 2)
    asked(nvim, 2)
    choose(nvim, 3)
    assert [(each["nonce"], each["approved"]) for each in answers(nvim)] == [("nonce-1", False), ("nonce-2", True)]


def test_of_two_questions_about_one_agent_each_has_its_own_answer(nvim: Neovim) -> None:
    nvim.press(":LymaAsk both<CR>")
    asked(nvim, 2)
    nvim.wait_for_text("withdrawn")
    assert manifest_is_shown(nvim)
    choose(nvim, 1)
    nvim.press(":LymaApprove<CR>")
    asked(nvim, 3)
    choose(nvim, 3)
    assert answers(nvim) == [None, {"hash": HASH, "nonce": "nonce-2", "approved": True}]


def test_keys_meant_for_the_text_answer_nothing(nvim: Neovim) -> None:
    nvim.lua(
        "vim.api.nvim_create_autocmd('InsertEnter', { once = true, callback = function() vim.cmd('LymaAsk approve') end })"
    )
    nvim.press("itext")
    nvim.wait_for_text("**approval**")
    nvim.press(" more")
    nvim.wait_for(lambda: nvim.lines() == ["text more"], "the text")
    assert nvim.lua("return #_G.prompts") == 0
    nvim.press("<Esc>")
    asked(nvim)
    choose(nvim, None)
    assert answers(nvim) == [None]


def test_neovims_own_prompt_takes_an_answer(tmp_path: Path) -> None:
    with Neovim(tmp_path / "editor", {}, command=ASKING) as nvim:
        nvim.press(":LymaAsk approve<CR>")
        nvim.wait_for_text("**approval**")
        nvim.wait_for(lambda: nvim.call("nvim_get_mode")["mode"] == "c", "the prompt")
        nvim.press("3<CR>")
        assert answers(nvim)[0]["approved"] is True
