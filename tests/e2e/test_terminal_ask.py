"""`lyma ask` against a provider on loopback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lyma_server.protocol.convert import structure
from lyma_server.protocol.events import Event
from lyma_server.protocol.messages import AskResult
from tests.lyma import COMMAND, environment, run_lyma, start_lyma
from tests.processes import wait_for
from tests.stub_provider import StubProvider, call_tool, fail, hang, html, never_answer, refusing_url, say


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("one\ntwo\nthree\n")
    return work


def local(url, **more):
    """An environment whose only provider is at `url`."""
    return environment(
        LYMA_ORDER="local", LYMA_PROVIDERS__LOCAL__BASE_URL=url, LYMA_PROVIDERS__LOCAL__MODEL="m", **more
    )


def sent_text(request):
    """All text that the model was sent."""
    return json.dumps(request.body["messages"], ensure_ascii=False)


class Screen:
    """A pseudo-terminal that `lyma` writes to."""

    def __init__(self, *arguments, stderr=None, **options):
        self.master, slave = pty.openpty()
        self.lyma = subprocess.Popen(
            [*COMMAND, *arguments], stdin=slave, stdout=slave, stderr=slave if stderr is None else stderr, **options
        )
        os.close(slave)
        self.seen = ""

    def read_until(self, text):
        while text not in self.seen:
            self.seen += os.read(self.master, 4096).decode()
        return self.seen

    def read_to_the_end(self):
        try:
            while data := os.read(self.master, 4096):
                self.seen += data.decode()
        except OSError:  # Linux says so when the last writer has left
            pass
        self.lyma.wait(10)
        return self.seen.replace("\r\n", "\n")


def test_a_pipe_gets_the_whole_text_and_nothing_else(folder):
    with StubProvider([say("Hel", "lo", " wörld")]) as stub:
        result = run_lyma("ask", "hi", "there", env=local(stub.openai_url), cwd=folder)
    assert (result.returncode, result.stdout) == (0, "Hello wörld\n")
    assert "hi there" in sent_text(stub.requests[0])
    assert result.stderr == ""


def test_a_terminal_gets_it_as_it_comes(folder):
    with StubProvider([hang("Hel", "lo")]) as stub:
        screen = Screen("ask", "hi", env=local(stub.openai_url), cwd=folder)
        screen.read_until("Hello")
        screen.lyma.send_signal(signal.SIGINT)
        seen = screen.read_to_the_end()
    assert "Hello\n" in seen
    assert "Cancelled." in seen
    assert screen.lyma.returncode == 130


def test_a_models_escapes_do_not_reach_a_terminal(folder):
    with StubProvider([say("a\x1b[2Jb")]) as stub:
        screen = Screen("ask", "hi", env=local(stub.openai_url, NO_COLOR="1"), cwd=folder)
        assert "a␛[2Jb" in screen.read_to_the_end()
    assert "\x1b" not in screen.seen


def test_json_is_events_and_then_the_result(folder):
    with StubProvider([say("Hello")]) as stub:
        result = run_lyma("ask", "--json", "hi", env=local(stub.openai_url), cwd=folder)
    *events, last = map(json.loads, result.stdout.splitlines())
    assert [structure(Event, event).seq for event in events] == list(range(1, len(events) + 1))
    assert last.pop("type") == "result"
    assert structure(AskResult, last).text == "Hello"
    assert events[-1]["type"] == "turn.completed"


def test_stdin_and_files_go_along(folder):
    with StubProvider([say("ok")]) as stub:
        result = run_lyma(
            "ask", "review", "-", "--file", "notes.txt:2-2", stdin="+@notes.txt", env=local(stub.openai_url), cwd=folder
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        text = sent_text(stub.requests[0])
        assert "review" in text
        assert "+@notes.txt" in text
        assert "two" in text
        assert "three" not in text
        run_lyma("ask", "-", stdin="@notes.txt", env=local(stub.openai_url), cwd=folder)
        assert "three" not in sent_text(stub.requests[1])
        run_lyma("ask", "explain @notes.txt:3.", env=local(stub.openai_url), cwd=folder)
        assert "three" in sent_text(stub.requests[2])


def test_a_conversation_goes_on(folder):
    with StubProvider([say("My name is Ada."), say("Ada."), say("Ada!")]) as stub:
        first = run_lyma("ask", "--json", "who are you?", env=local(stub.openai_url), cwd=folder)
        run_lyma("ask", "--continue", "again?", env=local(stub.openai_url), cwd=folder)
        session = json.loads(first.stdout.splitlines()[-1])["session"]
        run_lyma("ask", "--session", session, "once more?", env=local(stub.openai_url), cwd=folder)
        lost = run_lyma("ask", "--session", "nope", "x", env=local(stub.openai_url), cwd=folder)
        elsewhere = run_lyma("ask", "--continue", "x", env=local(stub.openai_url), cwd=folder.parent)
    assert "My name is Ada." in sent_text(stub.requests[1])
    assert "again?" in sent_text(stub.requests[2])
    assert (lost.returncode, lost.stderr.count("\n")) == (1, 1)
    assert "There is no session nope" in lost.stderr
    assert elsewhere.returncode == 2
    assert "There is no earlier session in this folder" in elsewhere.stderr


def test_tools_work_in_the_folder_and_are_told_on_stderr(folder):
    with StubProvider([call_tool("read_file", {"path": "notes.txt"}), say("It says one.")]) as stub:
        result = run_lyma("ask", "what is in notes?", env=local(stub.openai_url), cwd=folder)
    assert result.stdout == "It says one.\n"
    assert "read_file notes.txt" in result.stderr
    assert "three" in sent_text(stub.requests[1])


def test_no_tools_means_none(folder):
    with StubProvider([say("ok")]) as stub:
        run_lyma("ask", "--no-tools", "hi", env=local(stub.openai_url), cwd=folder)
        run_lyma("ask", "hi", env=local(stub.openai_url), cwd=folder)
    assert not stub.requests[0].body.get("tools")
    assert stub.requests[1].body["tools"]


@pytest.mark.parametrize("place", ["home", "/"])
def test_home_and_root_are_no_workspace(folder, place):
    where = folder if place == "home" else "/"
    with StubProvider([say("ok")]) as stub:
        result = run_lyma("ask", "hi", env=local(stub.openai_url, HOME=str(folder)), cwd=where)
    assert result.stdout == "ok\n"
    assert "without tools" in result.stderr
    assert not stub.requests[0].body.get("tools")


def test_the_next_provider_answers_and_stderr_says_so(folder):
    with StubProvider([say("second")]) as second:
        env = environment(
            LYMA_ORDER="first,second",
            LYMA_PROVIDERS__FIRST__BASE_URL=refusing_url(),
            LYMA_PROVIDERS__FIRST__MODEL="m1",
            LYMA_PROVIDERS__SECOND__BASE_URL=second.openai_url,
            LYMA_PROVIDERS__SECOND__MODEL="m2",
        )
        result = run_lyma("ask", "hi", env=env, cwd=folder)
        pinned = run_lyma("ask", "--provider", "first", "hi", env=env, cwd=folder)
        preferred = run_lyma("ask", "--prefer", "second", "hi", env=env, cwd=folder)
        unknown = run_lyma("ask", "--provider", "third", "hi", env=env, cwd=folder)
    assert (result.returncode, result.stdout) == (0, "second\n")
    assert result.stderr.splitlines()[-1] == "answered by second m2"
    assert "first" in result.stderr
    assert (pinned.returncode, pinned.stdout) == (4, "")
    assert (preferred.stdout, preferred.stderr) == ("second\n", "")
    assert unknown.returncode == 2
    assert "third" in unknown.stderr


@pytest.mark.parametrize("reply", [fail(400), fail(401), html(), fail(500)], ids=["400", "401", "html", "500"])
def test_a_failure_is_one_sentence_and_exit_4(folder, reply):
    with StubProvider([reply]) as stub:
        result = run_lyma("ask", "--json", "hi", env=local(stub.openai_url), cwd=folder)
    assert result.returncode == 4
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith("lyma: ")
    assert "Traceback" not in result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["type"], last["kind"], f"lyma: {last['message']}") == ("error", "provider_error", sentence)


def test_a_missing_key_is_one_sentence(folder):
    env = environment(LYMA_ORDER="openai", LYMA_PROVIDERS__OPENAI__KEYS="env:NOT_SET_ANYWHERE")
    result = run_lyma("ask", "hi", env=env, cwd=folder)
    assert result.returncode == 1
    assert "NOT_SET_ANYWHERE" in result.stderr
    assert "lyma setup" in result.stderr
    assert result.stderr.startswith("lyma: ")


def test_a_bad_configuration_is_one_sentence(folder):
    home = Path(os.environ["LYMA_HOME"])
    home.mkdir(mode=0o700)
    config = home / "config.toml"
    config.write_text("[agent]\nmax_steps = 'many'\n")
    config.chmod(0o600)
    result = run_lyma("ask", "hi", cwd=folder)
    assert result.returncode == 1
    assert f"{config}:2" in result.stderr or "line 2" in result.stderr
    assert "max_steps" in result.stderr


@pytest.mark.parametrize("reply", [never_answer(), hang("Half")], ids=["before the first word", "in the answer"])
def test_ctrl_c_keeps_what_was_said_and_closes_the_connection(folder, reply):
    with (
        StubProvider([reply]) as stub,
        start_lyma("ask", "--json", "hi", env=local(stub.openai_url), cwd=folder) as lyma,
    ):
        request = stub.wait_for_request()
        seen = ""
        while reply.text and "item.delta" not in seen:
            seen = lyma.stdout.readline()
        began = time.monotonic()
        lyma.send_signal(signal.SIGINT)
        out, err = lyma.communicate(timeout=10)
        assert time.monotonic() - began < 2
        assert request.closed.wait(2)
    result = json.loads(out.splitlines()[-1])
    assert lyma.returncode == 130
    assert (result["type"], result["stopReason"], result["text"]) == ("result", "cancelled", "".join(reply.text))
    assert "Traceback" not in err


def test_ctrl_c_in_a_pipe_prints_what_was_said_so_far(folder):
    with (
        StubProvider([hang("Half an", " answer")]) as stub,
        start_lyma("ask", "hi", env=local(stub.openai_url), cwd=folder) as lyma,
    ):
        stub.wait_for_request()
        time.sleep(0.3)  # until the words have arrived: a pipe shows none of them yet
        lyma.send_signal(signal.SIGINT)
        out, err = lyma.communicate(timeout=10)

    assert (out, lyma.returncode) == ("Half an answer\n", 130)
    assert "Cancelled." in err


def test_a_second_ctrl_c_leaves_at_once(folder):
    with (
        StubProvider([say("x" * 400_000)]) as stub,
        start_lyma("ask", "hi", env=local(stub.openai_url), cwd=folder) as lyma,
    ):
        stub.wait_for_request().done.wait(10)
        time.sleep(0.3)  # nobody reads, so it waits for its reader
        lyma.send_signal(signal.SIGINT)
        time.sleep(0.1)
        assert lyma.poll() is None
        lyma.send_signal(signal.SIGINT)
        assert lyma.wait(2) == 130


def test_a_reader_that_leaves_ends_the_turn_in_silence(folder):
    replies = [call_tool("read_file", {"path": "notes.txt"}, text=("first",)), hang("never", "ending")]
    with StubProvider(replies) as stub, start_lyma("ask", "hi", env=local(stub.openai_url), cwd=folder) as lyma:
        lyma.stdout.close()
        assert lyma.wait(10) == 1
        assert "rror" not in lyma.stderr.read()
        assert len(stub.requests) == 1 or stub.requests[1].closed.wait(2)


@pytest.mark.parametrize("delay_s", [0.15, 0.4, 0.8])
def test_an_early_ctrl_c_is_quiet_too(folder, delay_s):
    with StubProvider([hang("x")]) as stub, start_lyma("ask", "hi", env=local(stub.openai_url), cwd=folder) as lyma:
        time.sleep(delay_s)  # wherever it may be by then
        lyma.send_signal(signal.SIGINT)
        _, err = lyma.communicate(timeout=10)
    assert lyma.returncode == 130
    assert "Traceback" not in err


KEY = "sk-proj-canaryCANARY0123456789abcdef"
ECHOES = {
    "401": fail(401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}),
    "400": fail(400, {"error": {"message": f"bad {KEY}"}}),
    "html": html(502, f"<b>{KEY}</b>"),
    "header": fail(429, headers={"x-key": KEY, "retry-after": KEY}),
    "answer": say("your key is ", KEY[:11], KEY[11:]),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_the_provider_echoes_is_seen_nowhere(folder, echo):
    with StubProvider([ECHOES[echo]]) as stub:
        env = local(stub.openai_url, LYMA_PROVIDERS__LOCAL__KEYS=KEY)
        results = [run_lyma("ask", *options, "hi", env=env, cwd=folder) for options in ([], ["--json"])]
        assert stub.requests[0].key == KEY
    assert "canary" not in "".join(result.stdout + result.stderr for result in results)
    kept = [path for path in Path(os.environ["LYMA_HOME"]).rglob("*") if path.is_file()]
    assert kept
    assert not any(b"canary" in path.read_bytes() for path in kept)


def test_a_name_that_is_not_utf8_is_no_obstacle(tmp_path):
    name = b"caf\xe9.txt"
    folder = os.fsencode(tmp_path) + b"/d\xe9"
    os.mkdir(folder)
    with open(os.path.join(folder, name), "w") as file:
        file.write("hello\n")
    replies = [call_tool("list_files", {"path": "."}), say("seen"), say("again")]
    with StubProvider(replies) as stub:
        env = local(stub.openai_url, LYMA_HOME=str(tmp_path / "home"))
        first = run_lyma("ask", b"look at @" + name, cwd=folder, env=env)
        second = run_lyma("ask", "--continue", "and?", cwd=folder, env=env)
    assert (first.stdout, second.stdout) == ("seen\n", "again\n"), first.stderr + second.stderr
    assert "caf\ufffd.txt" in sent_text(stub.requests[1])
    assert "hello" in sent_text(stub.requests[0])


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (">/dev/full", 1, "lyma: The answer cannot be written: No space left on device.\n"),
        (">&-", 1, "lyma: The answer cannot be written: Bad file descriptor.\n"),
        ("2>&- <&-", 0, ""),
    ],
)
def test_an_answer_that_cannot_be_written_is_an_error(end, status, said, folder):
    with StubProvider([say("hello")]) as stub:
        shell = ["/bin/sh", "-c", f"{' '.join(COMMAND)} ask hi {end}"]
        result = subprocess.run(
            shell, env=local(stub.openai_url), cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    assert (result.returncode, result.stderr) == (status, said)
    assert result.stdout == ("hello\n" if status == 0 else "")


def test_ctrl_c_ends_the_command_of_a_key(folder, tmp_path):
    started = tmp_path / "started"
    command = f"cmd:touch {started}; exec sleep 50"
    env = environment(LYMA_ORDER="openai", LYMA_PROVIDERS__OPENAI__KEYS=json.dumps([command]))
    lyma = start_lyma("ask", "hi", env=env, cwd=folder)
    wait_for(started.exists)
    asked = time.monotonic()
    lyma.send_signal(signal.SIGINT)
    said = lyma.communicate(timeout=20)
    assert (lyma.returncode, *said) == (130, "", "")
    assert time.monotonic() - asked < 5
