"""The transcript among a person's windows, and what else Neovim shows of Lyma."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.editors.neovim import Neovim
from tests.editors.real_server import last_words, settings
from tests.processes import descendants, wait_until_gone
from tests.raw_client import ROOT
from tests.stub_provider import Reply, Request, StubProvider, call_tool, cut, fail, hang, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CURSORS = """
return vim.tbl_map(function(window)
  local buffer = vim.api.nvim_win_get_buf(window)
  return { vim.b[buffer].lyma_transcript or false, vim.api.nvim_win_get_cursor(window)[1], vim.api.nvim_buf_line_count(buffer) }
end, vim.api.nvim_list_wins())
"""

HIDDEN_MARKS = """
for _, window in ipairs(vim.api.nvim_list_wins()) do
  if vim.b[vim.api.nvim_win_get_buf(window)].lyma_transcript then
    return { vim.wo[window].conceallevel, vim.wo[window].concealcursor }
  end
end
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Neovim]]:
    opened: list[Any] = []

    def open_neovim(replies: Any, *arguments: str, **more: str) -> Neovim:
        opened.append(StubProvider(replies).__enter__())
        nvim = Neovim(tmp_path / "editor", {**settings(opened[0], tmp_path / "home"), **more}, *arguments)
        nvim.stub = opened[0]
        opened.append(nvim)
        return nvim

    yield open_neovim
    for each in reversed(opened):
        each.__exit__()


def transcript_cursor(nvim: Neovim) -> tuple[int, int]:
    """The line of the cursor in the transcript's window, and the last line."""
    return next((line, last) for is_transcript, line, last in nvim.lua(CURSORS) if is_transcript)


def lines_forever(*_: Any) -> Reply:
    return Reply(text=tuple(f"line {number}\n" for number in range(2000)), pause_s=0.01)


def test_the_view_follows_the_end_until_the_cursor_is_moved(start) -> None:
    nvim = start(lines_forever)
    nvim.press(":LymaAsk go<CR>")
    nvim.wait_for_text("line 20\n")
    line, last = transcript_cursor(nvim)
    assert line == last > 20
    nvim.press("<C-w>wgg")
    nvim.wait_for(lambda: transcript_cursor(nvim)[0] == 1)
    grown = transcript_cursor(nvim)[1] + 10
    nvim.wait_for(lambda: transcript_cursor(nvim)[1] > grown)
    assert transcript_cursor(nvim)[0] == 1
    nvim.press("G")
    nvim.wait_for(lambda: transcript_cursor(nvim)[1] > grown + 30)
    line, last = transcript_cursor(nvim)
    assert line == last
    assert nvim.lua("return { vim.bo.modifiable, vim.bo.modified, vim.bo.buftype, vim.bo.filetype }") == [
        False, False, "nofile", "markdown",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "away",
    [
        "<C-w>wq",
        ":bwipeout! lyma://1<CR>",
        *(pytest.param(away, marks=pytest.mark.full) for away in (":bdelete lyma://1<CR>", ":tabnew<CR>:tabonly<CR>")),
    ],
)
def test_a_transcript_that_is_closed_or_wiped_does_no_harm(start, away: str) -> None:
    nvim = start(lambda request: lines_forever() if "go" in last_words(request) else say("second answer"))
    nvim.press(":LymaAsk go<CR>")
    nvim.wait_for_text("line 5\n")
    nvim.press(away)
    nvim.wait_for(lambda: not any(row[0] for row in nvim.lua(CURSORS)), "the window gone")
    nvim.press(":LymaStop<CR>")
    nvim.wait_for(lambda: nvim.lua("return require('lyma.ask').activity.running == 0"), "the end")
    nvim.press(":LymaAsk more<CR>")
    nvim.wait_for_text("second answer")
    assert any(row[0] for row in nvim.lua(CURSORS))
    assert "go" in str(nvim.stub.requests[-1].body["messages"]), "the session was lost"
    assert "rror" not in nvim.messages()


def test_a_new_session_has_a_transcript_of_its_own(start) -> None:
    nvim = start(lambda request: say(f"answer to {last_words(request)}"))
    nvim.press(":LymaAsk first<CR>")
    nvim.wait_for_text("done ·")
    nvim.press(":LymaAsk! second<CR>")
    nvim.wait_for(lambda: nvim.transcript().count("done ·") == 2)
    assert sum(row[0] for row in nvim.lua(CURSORS)) == 1
    assert nvim.lua(HIDDEN_MARKS) == [2, "nc"], "a window that shows another transcript lost what it is to look like"
    assert "first" not in str(nvim.stub.requests[-1].body["messages"])


def test_calls_routes_and_tokens_are_marked(start) -> None:
    keys = "sk-aaaaaaaaaaaaaaaaaaaa,sk-bbbbbbbbbbbbbbbbbbbb"
    replies = [
        fail(401),
        call_tool("read_file", {"path": "a.txt"}),
        call_tool("read_file", {"path": "none"}),
        say("ok"),
    ]
    nvim = start(replies, LYMA_PROVIDERS__LOCAL__KEYS=keys)
    nvim.edit("a.txt", "one\n")
    nvim.press(":LymaAsk go<CR>")
    shown = nvim.wait_for_text("done ·")
    assert re.search(r"^\*local key …aaaa: \w+ \(401\), rotate\*$", shown, re.MULTILINE)
    assert "▸ **read_file** `path=a.txt`" in shown
    assert "✗ " in shown
    assert re.search(r"^\*done · \d+ in, \d+ out · .*local stub-model\*$", shown, re.MULTILINE)


def test_a_part_that_broke_off_is_void(start) -> None:
    nvim = start([cut("half an ans"), say("a whole answer")])
    nvim.press(":LymaAsk go<CR>")
    shown = nvim.wait_for_text("done ·")
    assert "half an ans" not in shown
    assert "broke off and is asked again" in shown
    assert "a whole answer" in shown


def test_progress_and_the_statusline_say_what_is_going_on(start) -> None:
    nvim = start([hang("word")])
    nvim.lua("""
        _G.kinds = {}
        vim.api.nvim_create_autocmd("LspProgress", { callback = function(event) table.insert(_G.kinds, event.data.params.value.kind) end })
    """)
    assert nvim.lua("return require('lyma').statusline()") == ""
    nvim.press(":LymaAsk go<CR>")
    nvim.wait_for_text("word")
    assert nvim.lua("return require('lyma').statusline()") == "Lyma: answering"
    nvim.press(":LymaStop<CR>")
    nvim.wait_for_text("*cancelled")
    nvim.wait_for(lambda: nvim.lua("return require('lyma').statusline()") != "Lyma: answering")
    assert nvim.lua("return _G.kinds[1]") == "begin"
    nvim.wait_for(lambda: nvim.lua("return _G.kinds[#_G.kinds]") == "end")


def test_a_server_that_dies_is_told_and_started_again(start) -> None:
    nvim = start(lambda request: say("second answer") if "second" in last_words(request) else hang("word"))
    nvim.press(":LymaAsk first<CR>")
    nvim.wait_for_text("word")
    family = descendants(nvim.process.pid)
    nvim.lua("vim.uv.kill(..., 9)", min(family))
    nvim.wait_for_text("The server has ended")
    wait_until_gone(family)
    nvim.press(":LymaAsk second<CR>")
    nvim.wait_for_text("second answer")


def test_a_server_that_is_not_there_is_one_sentence(start) -> None:
    nvim = start([], "--cmd", "let $PATH='/usr/bin:/bin'")
    nvim.press(":LymaAsk hello<CR>")
    nvim.wait_for(lambda: "lyma-server is not on the PATH" in nvim.messages())
    nvim.call("nvim_command", "checkhealth lyma")
    assert any("not on the PATH" in line for line in nvim.lines())
    assert "stack traceback" not in nvim.messages()
    nvim.press(":LymaAsk again<CR>")
    nvim.wait_for(lambda: nvim.messages().count("is not on the PATH") == 2)


def test_a_second_prompt_while_the_server_starts_is_refused_aloud(start) -> None:
    nvim = start(lambda request: say("answer to " + last_words(request)))
    nvim.press(":LymaAsk first<CR>:LymaAsk second<CR>")
    nvim.wait_for_text("answer to first")
    assert "still answering" in nvim.messages()
    assert "second" not in nvim.transcript()


def test_a_prompt_that_was_stopped_before_the_server_started_is_never_sent(start) -> None:
    nvim = start(lambda request: say("answer to " + last_words(request)))
    nvim.press(":LymaAsk first<CR>:LymaStop<CR>:LymaAsk second<CR>")
    nvim.wait_for_text("answer to second")
    assert [last_words(request) for request in nvim.stub.requests] == ["second"]


def test_enabling_starts_it_with_the_first_file_and_without_setup(start) -> None:
    nvim = start([say("hello")], "-c", "lua vim.lsp.enable('lyma')")
    nvim.edit("a.py", "x = 1\n")
    nvim.wait_for(lambda: nvim.lua("return #vim.lsp.get_clients({ name = 'lyma', bufnr = 0 }) == 1"), "the client")
    nvim.press(":LymaAsk hello<CR>")
    nvim.wait_for_text("done ·")
    assert nvim.lua("return #vim.lsp.get_clients({ name = 'lyma' })") == 1


HABITS = "return { vim.fn.maparg('K', 'n'), vim.bo.omnifunc, #vim.lsp.get_clients({ bufnr = 0 }) }"


def test_it_takes_over_no_key_where_it_has_nothing_to_say(start) -> None:
    nvim = start([say("hello")], "-c", "lua vim.lsp.enable('lyma')")
    nvim.edit("a.sh", "ls\n")
    own = nvim.lua("return vim.bo.omnifunc")
    nvim.wait_for(lambda: nvim.lua(HABITS)[2] == 1, "the client")
    nvim.wait_for(lambda: nvim.lua("return vim.lsp.get_clients()[1].initialized"))
    assert nvim.lua(HABITS) == ["", own, 1]
    nvim.edit("agent.toml", 'lyma_agent = 1\nname = "x"\n')
    nvim.wait_for(lambda: nvim.lua(HABITS)[2] == 1, "the client")
    nvim.wait_for(lambda: nvim.lua("return #vim.diagnostic.get(0)") > 0, "the compiler's word")
    assert nvim.lua(HABITS)[1] == "v:lua.vim.lsp.omnifunc"
    code = "return vim.lsp.buf_request_sync(0, 'textDocument/hover', vim.lsp.util.make_position_params(0, 'utf-16'), 10000)"
    assert "result" in next(iter(nvim.lua(f"return vim.tbl_values((function() {code} end)())")))
    nvim.press("K")
    nvim.wait_for(lambda: nvim.lua("return #vim.api.nvim_list_wins()") == 2, "the hover")


def edit_once(request: Request) -> Reply:
    if request.body["messages"][-1]["role"] == "tool":
        return say("edited")
    return call_tool("write_file", {"path": "new.txt", "text": "made\n"})


def test_a_session_is_replayed_undone_and_completed(start) -> None:
    nvim = start(edit_once)
    nvim.press(":LymaAsk make a file<CR>")
    nvim.wait_for_text("done ·")
    made = nvim.root / "new.txt"
    assert made.read_text() == "made\n"
    nvim.press(":LymaUndo<CR>")
    nvim.wait_for(lambda: not made.exists(), "the undoing")
    nvim.wait_for(lambda: "new.txt removed" in nvim.messages())
    session = nvim.lua("return require('lyma.ask').session()")
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert nvim.lua(complete, "LymaSessions ") == [session]
    assert nvim.lua(complete, "LymaModels l") == ["local"]
    made.touch()
    assert nvim.lua(complete, "LymaAsk @n") == ["@new.txt"]
    nvim.press(f":LymaSessions {session}<CR>")
    nvim.wait_for(lambda: nvim.transcript().count("## make a file") == 2)
    nvim.wait_for(lambda: nvim.transcript().count("*done · ") == 2)
    nvim.lua("vim.ui.select = function(items, options) _G.described = options.format_item(items[1]) end")
    nvim.press(":LymaSessions<CR>")
    described = nvim.wait_for(lambda: nvim.lua("return _G.described"), "the list")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d  root: make a file", described)


def test_status_models_and_health_are_shown(start) -> None:
    nvim = start([say("hello")])
    for command, words in (("LymaStatus", "- **local** stub-model"), ("LymaModels", "- **local** stub-model")):
        nvim.press(f":{command}<CR>")
        nvim.wait_for(lambda words=words: any(words in line for line in nvim.lines()), command)
        nvim.press("q")
        nvim.wait_for(lambda words=words: not any(words in line for line in nvim.lines()), command)
    nvim.call("nvim_command", "checkhealth lyma")
    shown = "\n".join(nvim.lines())
    assert "OK The server is" in shown
    assert "stub-model" in shown


def test_without_a_prompt_one_is_asked_for(start) -> None:
    nvim = start([say("hello")])
    nvim.edit("a.py", "x = 1\ny = 2\n")
    nvim.lua("vim.keymap.set({ 'n', 'x' }, 'gl', '<Plug>(lyma-ask)')")
    nvim.press("jVgl")
    nvim.press("what is this<CR>")
    nvim.wait_for_text("done ·")
    sent = str(nvim.stub.requests[0].body["messages"])
    assert "what is this" in sent
    assert "y = 2" in sent
    assert "x = 1" not in sent


def test_the_readme_and_the_page_on_editors_say_how_it_is_installed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "editors.md").read_text()
    load = re.search(r"load = (function\(plugin\).*?\n  end),", page, re.DOTALL)
    assert load is not None
    with Neovim(tmp_path / "editor", {}, installed=False) as nvim:
        assert nvim.call("nvim_eval", "exists(':LymaAsk')") == 0
        nvim.lua(f"({load[1]})({{ path = ... }})", str(ROOT))
        assert nvim.call("nvim_eval", "exists(':LymaAsk')") == 2
        nvim.press(":LymaAsk hello<CR>")
        nvim.wait_for_text("## hello")
    for text in (page, (ROOT / "README.md").read_text()):
        assert "ln -s ~/lyma/clients/neovim ~/.local/share/nvim/site/pack/lyma/start/lyma" in text
        assert '{ dir = "~/lyma/clients/neovim" }' in text
