"""`:LymaAsk` and its like in a real Neovim, with the real server and a scripted model."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.editors.neovim import Neovim
from tests.editors.real_server import last_words, settings
from tests.processes import descendants, wait_until_gone
from tests.stub_provider import Reply, Request, StubProvider, call_tool, hang, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Neovim]]:
    """Start Neovim on a model that answers so."""
    opened: list[StubProvider | Neovim] = []

    def open_neovim(replies, *arguments: str) -> Neovim:
        stub = StubProvider(replies).__enter__()
        opened.append(stub)
        nvim = Neovim(tmp_path / "editor", settings(stub, tmp_path / "home"), *arguments)
        nvim.stub = stub
        opened.append(nvim)
        return nvim

    yield open_neovim
    for each in reversed(opened):
        each.__exit__()


def everything_sent(request: Request) -> str:
    return str(request.body["messages"])


def test_an_empty_configuration_streams_an_answer(start) -> None:
    nvim = start([Reply(text=("Hello", " from", " the", " stub"), end="hang")])
    nvim.edit("a.py", "x = 1\n")
    nvim.press(":LymaAsk hello<CR>")
    nvim.wait_for_text("Hello from the stub")  # while the model has not ended
    assert nvim.lua("return vim.api.nvim_buf_get_name(0)").endswith("a.py"), "the focus was stolen"
    assert "## hello" in nvim.transcript()
    nvim.press(":LymaStop<CR>")
    nvim.wait_for_text("cancelled")


def test_the_help_is_found_as_it_was_installed(start) -> None:
    nvim = start([])
    nvim.press(":help :LymaAsk<CR>")
    nvim.wait_for(lambda: nvim.lua("return vim.bo.filetype") == "help", "the help")
    assert nvim.lua("return vim.api.nvim_get_current_line()").endswith("*:LymaAsk*")


def test_stop_says_so_where_there_is_nothing_to_stop(start) -> None:
    nvim = start([])
    nvim.press(":LymaStop<CR>")
    nvim.wait_for(lambda: "nothing is under way" in nvim.messages())


def test_stop_stops_within_two_seconds_and_the_session_goes_on(start) -> None:
    nvim = start(lambda request: hang("word") if "first" in last_words(request) else say("second answer"))
    nvim.press(":LymaAsk first<CR>")
    nvim.wait_for_text("word")
    begun = time.monotonic()
    nvim.press(":LymaStop<CR>")
    nvim.wait_for_text("cancelled")
    assert time.monotonic() - begun < 2
    nvim.press(":LymaAsk second<CR>")
    nvim.wait_for_text("second answer")
    assert "first" in everything_sent(nvim.stub.requests[-1])


def test_one_key_in_the_transcript_stops(start) -> None:
    nvim = start([hang("word")])
    nvim.press(":LymaAsk first<CR>")
    nvim.wait_for_text("word")
    nvim.press("<C-w>w")
    nvim.wait_for(lambda: nvim.lua("return vim.b.lyma_transcript"))
    nvim.press("<C-c>")
    nvim.wait_for_text("cancelled")
    assert nvim.stub.requests[0].closed.wait(5)


def test_quitting_in_the_middle_leaves_no_process(start) -> None:
    nvim = start([hang("word")])
    nvim.press(":LymaAsk hello<CR>")
    nvim.wait_for_text("word")
    family = descendants(nvim.process.pid)
    assert family
    nvim.press(":qa!<CR>")
    nvim.process.wait(10)
    assert wait_until_gone(family) < 3


def test_a_selection_of_an_unsaved_buffer_is_sent_as_it_is_shown(start) -> None:
    nvim = start([say("seen")])
    nvim.edit("a.py", "one\ntwo\nthree\n")
    nvim.press("jccunsaved words<Esc>V:LymaAsk what is this<CR>")
    nvim.wait_for_text("seen")
    sent = everything_sent(nvim.stub.requests[0])
    assert "unsaved words" in sent
    assert "<selection" in sent
    assert "three" not in sent
    assert (nvim.root / "a.py").read_text() == "one\ntwo\nthree\n"
    assert "with selection of a.py" in nvim.transcript()


def test_a_selection_of_a_buffer_without_a_name_is_sent(start) -> None:
    nvim = start([say("seen")])
    nvim.press("ifrom nowhere @a.py<Esc>V:LymaAsk what is this<CR>")
    nvim.wait_for_text("seen")
    assert "from nowhere @a.py" in everything_sent(nvim.stub.requests[0])


def edits(*pairs: tuple[str, str]) -> Callable[[Request], Reply]:
    """A model that makes one edit of a.txt after the other."""

    def answer(request: Request) -> Reply:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        if done == len(pairs):
            return say("all is edited")
        old, new = pairs[done]
        return call_tool("edit_file", {"path": "a.txt", "edits": [{"old_text": old, "new_text": new}]})

    return answer


def test_one_u_undoes_the_edit_and_nothing_else(start) -> None:
    nvim = start(edits(("two", "2"), ("three", "3")))
    nvim.edit("a.txt", "one\ntwo\nthree\n")
    nvim.press("x:LymaAsk edit it<CR>")
    nvim.wait_for_text("all is edited")
    assert nvim.lines() == ["ne", "2", "3"]
    nvim.press("u")
    nvim.wait_for(lambda: nvim.lines() == ["ne", "two", "three"])
    nvim.press("u")
    nvim.wait_for(lambda: nvim.lines() == ["one", "two", "three"])
    nvim.press("<C-r><C-r>")
    nvim.wait_for(lambda: nvim.lines() == ["ne", "2", "3"])
    assert "**edited** a.txt" in nvim.transcript()
    assert "+2" in nvim.transcript()


def test_what_was_typed_while_the_model_thought_is_a_step_of_its_own(start) -> None:
    typed = threading.Event()
    edit = edits(("two", "2"))

    def answer(request: Request) -> Reply:
        assert typed.wait(20)
        return edit(request)

    nvim = start(answer)
    nvim.edit("a.txt", "one\ntwo\n")
    nvim.press(":LymaAsk edit it<CR>")
    nvim.wait_for(lambda: nvim.stub.requests, "the request")
    nvim.press("iall ")
    nvim.wait_for(lambda: nvim.lines() == ["all one", "two"])
    nvim.lua("vim.lsp.get_clients()[1]:request_sync('lyma/status', vim.empty_dict(), 9000)")  # and all that waits
    typed.set()
    nvim.wait_for_text("all is edited")
    assert nvim.lines() == ["all one", "2"], nvim.stub.requests[-1].body["messages"][-1]
    nvim.press("<Esc>u")
    nvim.wait_for(lambda: nvim.lines() != ["all one", "2"])
    assert nvim.lines() == ["all one", "two"]


def test_the_diagnostics_of_the_line_travel_along(start) -> None:
    nvim = start([say("seen")])
    nvim.edit("a.py", "é = oops\nother\n")
    nvim.lua("""
        vim.diagnostic.set(vim.api.nvim_create_namespace("x"), 0, {
          { lnum = 0, col = 5, end_col = 9, message = "no such name", severity = 1, source = "lint" },
          { lnum = 1, col = 0, message = "other trouble", severity = 2 },
        })
    """)
    nvim.press(":LymaAsk why<CR>")
    nvim.wait_for_text("seen")
    sent = everything_sent(nvim.stub.requests[0])
    assert "no such name (lint)" in sent
    assert "other trouble" not in sent
