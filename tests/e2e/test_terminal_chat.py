"""`lyma chat` at a terminal and in a pipe, against a provider on loopback."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from tests.lyma import environment, run_lyma, start_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.stub_provider import StubProvider, call_tool, fail, hang, say

EDIT = call_tool("edit_file", {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}]})


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    return work


def local(stub, **more):
    return environment(
        LYMA_ORDER="local",
        LYMA_PROVIDERS__LOCAL__BASE_URL=stub.openai_url,
        LYMA_PROVIDERS__LOCAL__MODEL="m",
        TERM="xterm",
        **more,
    )


def said_by_the_user(request):
    return [message["content"] for message in request.body["messages"] if message["role"] == "user"]


def prompted(terminal, shown="/help"):
    """Wait for a new prompt with its status line. Each begins by asking the terminal to mark what is pasted."""
    terminal.expect("\x1b[?2004h")
    terminal.expect(shown)


def test_a_conversation_at_a_terminal(folder):
    with StubProvider([say("First ", "answer."), say("Second answer.")]) as stub:
        with PseudoTerminal("chat", env=local(stub), cwd=folder) as terminal:
            prompted(terminal, "local m")
            terminal.press("hello\r")
            terminal.expect("First answer.")
            prompted(terminal, "session ")
            terminal.press("and\\\rmore\r")
            terminal.expect("Second answer.")
            prompted(terminal)
            terminal.press("\x04")
            assert terminal.leave() == 0
        assert "and\nmore" in str(said_by_the_user(stub.requests[1])[-1])
        assert len(said_by_the_user(stub.requests[1])) == 2
    history = Path(os.environ["LYMA_HOME"]) / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+hello" in history.read_text()


def test_ctrl_c_stops_the_turn_and_not_the_program(folder):
    with StubProvider([hang("Once upon"), say("Still here.")]) as stub:
        with PseudoTerminal("chat", env=local(stub), cwd=folder) as terminal:
            prompted(terminal)
            terminal.press("tell\r")
            terminal.expect("Once upon")
            terminal.interrupt()
            terminal.expect("Cancelled.")
            prompted(terminal)
            terminal.press("half a line\x03")
            prompted(terminal)
            terminal.interrupt()
            prompted(terminal)
            terminal.press("go on\r")
            terminal.expect("Still here.")
            prompted(terminal)
            terminal.press("\x04")
            assert terminal.leave() == 0
        assert stub.requests[0].closed.wait(5)
        assert len(said_by_the_user(stub.requests[1])) == 2
        assert "half a line" not in json.dumps(stub.requests[1].body)


def test_a_terminal_that_closes_ends_the_turn_and_the_program(folder):
    with StubProvider([hang("Once upon")]) as stub:
        with PseudoTerminal("chat", env=local(stub), cwd=folder) as terminal:
            prompted(terminal)
            terminal.press("tell\r")
            terminal.expect("Once upon")
            terminal._process.send_signal(signal.SIGHUP)
            assert terminal.leave() == 130
        assert stub.requests[0].closed.wait(5)


def test_a_pipe_gets_the_answers_and_nothing_else(folder):
    with StubProvider([say("One."), say("Two.")]) as stub:
        ended = run_lyma("chat", stdin="hello\n\n/new\n/model\nagain\n", env=local(stub), cwd=folder)
        assert (ended.returncode, ended.stdout) == (0, "One.\nTwo.\n")
        assert len(said_by_the_user(stub.requests[1])) == 1
    assert "A new session begins" in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr


def test_commands_see_and_undo_what_the_conversation_changed(folder):
    with StubProvider([EDIT, say("Done."), say("Yes.")]) as stub:
        ended = run_lyma("chat", stdin="change\n/diff\n/undo\n/session\nreally?\n", env=local(stub), cwd=folder)
        assert ended.returncode == 0, ended.stderr
        assert "-one\n+1\n" in ended.stdout
        assert "restored a.txt" in ended.stderr
        assert "has undone what you changed" in json.dumps(stub.requests[2].body)
    assert (folder / "a.txt").read_text() == "one\n"


SENTENCES = {
    "/nonsense": "There is no /nonsense; /help lists",
    "/undo": "Nothing was asked yet in this session",
    "/new now": "/new takes nothing.",
    '/model "': "cannot be read",
    "/model no such thing": "/model takes",
    "/model nobody m": "There is no provider nobody",
    "/session 0": "There is no session 0",
    "/help": "put back what the last turn changed",
    "/status": "home ",
    "/sessions": "no sessions in this folder",
    "/agents": "There are no compiled agents",
    "/approve": "waiting in this folder: none",
    "/model local x": "asking local x",
    "/model auto": "asking local",
}


def test_commands_answer_in_a_sentence(folder):
    with StubProvider([say("never")]) as stub:
        ended = run_lyma("chat", stdin="\n".join(SENTENCES), env=local(stub), cwd=folder)
        assert not stub.requests
    told = ended.stderr + ended.stdout
    assert not [said for said in SENTENCES.values() if said not in told], told
    assert "Traceback" not in told


def test_a_slash_can_begin_a_prompt(folder):
    with StubProvider([say("ok")]) as stub:
        run_lyma("chat", stdin="//etc is what?\n", env=local(stub), cwd=folder)
        assert "/etc is what?" in str(said_by_the_user(stub.requests[0])[-1])
        assert "//etc" not in str(said_by_the_user(stub.requests[0])[-1])


def test_a_turn_that_fails_is_a_sentence_and_its_session_goes_on(folder):
    with StubProvider([fail(400), say("Better.")]) as stub:
        ended = run_lyma("chat", stdin="hello\nagain\n", env=local(stub), cwd=folder)
        assert ended.stdout == "Better.\n"
        assert ended.returncode == 1
        assert len(said_by_the_user(stub.requests[1])) == 1 or "hello" in json.dumps(stub.requests[1].body)
        assert "hello" in json.dumps(stub.requests[-1].body)


def test_a_session_goes_on(folder):
    with StubProvider([say("One."), say("Two.")]) as stub:
        run_lyma("ask", "hello", env=local(stub), cwd=folder)
        ended = run_lyma("chat", "--continue", stdin="again\n", env=local(stub), cwd=folder)
        assert ended.stdout == "Two.\n"
        assert "hello" in json.dumps(stub.requests[1].body)
        assert run_lyma("chat", "--session", "0" * 26, stdin="x\n", env=local(stub), cwd=folder).returncode == 1


def test_ctrl_c_in_a_pipe_stops_the_turn_first(folder):
    with StubProvider([hang("Once upon")]) as stub:
        lyma = start_lyma("chat", env=local(stub), cwd=folder, stdin=-1)
        lyma.stdin.write("tell\n")
        lyma.stdin.flush()
        stub.wait_for_request()
        lyma.send_signal(signal.SIGINT)
        assert stub.requests[0].closed.wait(5)
        lyma.stdin.close()
        assert lyma.wait(20) == 0
        assert lyma.stdout.read() in {"", "Once upon\n"}
        lyma.stdout.close()
        lyma.stderr.close()


def test_nothing_of_it_is_imported_for_other_commands(folder):
    import subprocess
    import sys

    code = "import sys; from lyma_server.terminal import ask, sessions, undo; sys.exit('prompt_toolkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
