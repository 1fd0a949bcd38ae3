"""One turn, and everything that may befall it halfway: nothing that was shown as done is lost, nobody hangs, one message
says what is wrong, and the next start works.

The turn says a word, edits a file with a tool and then says more; by then the fault happens.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.editor.features.uris import to_uri
from tests.editors.real_server import COMMAND, last_words, settings
from tests.processes import LIMIT_S, wait_until_gone
from tests.raw_client import ROOT, RawClient, environment, read_message
from tests.stub_provider import Reply, Request, StubProvider, cut, hang, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BEFORE, AFTER = b"one\r\n", b"1\r\n"
EDIT = json.dumps({"path": "a b.txt", "edits": [{"old_text": "one", "new_text": "1"}]})
YEAR_S = 365 * 86_400


class Scene:
    """A home, a workspace and a provider; `ending` is what it says after the edit."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root = folder / "home", (folder / "wörk space").resolve()
        self.home.mkdir(mode=0o700)
        self.root.mkdir()
        self.file = self.root / "a b.txt"
        self.file.write_bytes(BEFORE)
        self.endings: list[Reply] = [hang("Now ", "more ")]
        self.stub = StubProvider(self.answer)

    def answer(self, request: Request) -> Reply:
        if "again" in last_words(request):
            return say("Welcome back.")
        if request.body["messages"][-1]["role"] == "tool":
            return self.endings.pop(0)
        return Reply(text=("Working.",), calls=(("edit_file", EDIT),))

    @contextmanager
    def server(self, command: Sequence[str] = COMMAND, **more: Any) -> Iterator[RawClient]:
        with RawClient(command, env=settings(self.stub, self.home) | more) as client:
            client.initialize(workspaceFolders=[{"uri": to_uri(self.root), "name": "root"}])
            yield client

    def halfway(self, client: RawClient) -> int:
        """Ask, and come to the middle of the second answer."""
        identity = client.request("lyma/ask", {"prompt": "go"})
        client.wait_for(lambda found: "Now" in str(found.get("params", {}).get("text", "")))
        return identity

    def start_again(self, session: str, shown: Sequence[dict[str, Any]] = (), ending: str = "interrupted") -> None:
        """All that was shown as done is there, the turn has ended, its edit can be undone and the session goes on."""
        with self.server() as client:
            loaded = client.call("lyma/sessions", {"action": "load", "session": session})
            assert loaded["result"]["sessions"][0]["session"] == session
            replayed = client.events()
            items = [event["item"] for event in replayed if event["type"] == "item.completed"]
            assert [item for item in shown if item not in items] == []
            assert [event["stopReason"] for event in replayed if event["type"] == "turn.completed"] == [ending]
            open_items = {event["item"]["id"] for event in replayed if event["type"] == "item.started"}
            closed = {event["item"]["id"] for event in replayed if event["type"] == "item.completed"}
            closed |= {event["item"] for event in replayed if event["type"] == "item.discarded"}
            assert open_items == closed
            assert self.file.read_bytes() == AFTER
            undone = client.call("lyma/sessions", {"action": "undo", "session": session})["result"]
            assert [each["outcome"] for each in undone["files"]] == ["restored"]
            assert self.file.read_bytes() == BEFORE
            result = client.call("lyma/ask", {"prompt": "again", "session": session})["result"]
            assert result["text"] == "Welcome back."


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    with scene.stub:
        yield scene


def completed(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that were shown as done: the word, the call, the edit and its result."""
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    assert {"text", "tool_call", "edit", "tool_result"} <= {item["kind"] for item in items}
    return items


def test_the_client_is_killed(scene: Scene) -> None:
    words = ["-m", "tests.editors.doomed_client", "alone", "go", '"text":"Now', *COMMAND]
    variables = environment(**settings(scene.stub, scene.home), ROOT_URI=to_uri(scene.root))
    client = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, env=variables, cwd=ROOT)
    with client:
        server = int(client.stdout.readline().split()[0])
        client.kill()
        wait_until_gone([server])
    assert scene.stub.requests[-1].closed.wait(LIMIT_S)
    (session,) = (path.stem for path in (scene.home / "sessions").glob("*.jsonl"))
    scene.start_again(session, ending="cancelled")


@pytest.mark.parametrize("how", ["stdin closed", "server killed", pytest.param("SIGTERM", marks=pytest.mark.full)])
def test_the_server_loses_its_reason_to_live(scene: Scene, how: str) -> None:
    with scene.server() as client:
        scene.halfway(client)
        start = time.monotonic()
        if how == "stdin closed":
            client.process.stdin.close()
        else:
            client.process.send_signal(signal.SIGTERM if how == "SIGTERM" else signal.SIGKILL)
        client.wait()
        assert time.monotonic() - start < LIMIT_S
        assert scene.stub.requests[-1].closed.wait(LIMIT_S)
        shown = completed(client.events())
        session = client.events()[0]["session"]
        assert b"Traceback" not in client.errors
    scene.start_again(session, shown, "interrupted" if how == "server killed" else "cancelled")


def test_stdout_is_closed(scene: Scene) -> None:
    client = RawClient(COMMAND, read=False, env=settings(scene.stub, scene.home))
    with client:
        folder = {"uri": to_uri(scene.root), "name": "root"}
        client.request("initialize", {"processId": None, "capabilities": {}, "workspaceFolders": [folder]})
        client.notify("initialized", {})
        client.request("lyma/ask", {"prompt": "go"})
        events: list[dict[str, Any]] = []
        while not events or "Now" not in str(events[-1].get("text", "")):
            message = read_message(client.process.stdout)
            events += [message["params"]] if message and message.get("method") == "lyma/event" else []
        client.process.stdout.close()
        client.wait(LIMIT_S)
        assert scene.stub.requests[-1].closed.wait(LIMIT_S)
    scene.start_again(events[0]["session"], completed(events), "cancelled")


def test_the_provider_cuts_the_connection(scene: Scene) -> None:
    """The interruption is shown, the broken item is void, and one whole answer follows."""
    scene.endings = [cut(*(f"word{number} " for number in range(10))), say("The whole ", "answer.")]
    with scene.server() as client:
        result = client.call("lyma/ask", {"prompt": "go"})["result"]
        assert result["text"] == "Working.\n\nThe whole answer."
        events = client.events()
        (discarded,) = [event["item"] for event in events if event["type"] == "item.discarded"]
        said = "".join(
            event["text"] for event in events if event["type"] == "item.delta" and event["item"] == discarded
        )
        assert said.startswith("word0 word1")
        order = [
            event["type"] for event in events if event.get("item") == discarded or event["type"] == "turn.completed"
        ]
        assert order[-2:] == ["item.discarded", "turn.completed"]
        classes = [event["class"] for event in events if event["type"] == "route"]
        assert classes[0] == classes[-1] == "ok"
        assert any(name != "ok" for name in classes)
    scene.start_again(result["session"], completed(events), "end_turn")


def test_a_cut_in_a_pipe_leaves_only_the_whole_answer(scene: Scene) -> None:
    from tests.lyma import run_lyma

    scene.endings = [cut(*(f"word{number} " for number in range(10))), say("The whole ", "answer.")]
    ended = run_lyma("ask", "go", env=environment(**settings(scene.stub, scene.home)), cwd=scene.root)
    assert (ended.returncode, ended.stdout) == (0, "Working.\n\nThe whole answer.\n")
    assert "word0" not in ended.stdout
    assert "void" in ended.stderr


def test_the_session_file_is_cut_in_the_middle_of_a_line(scene: Scene) -> None:
    with scene.server() as client:
        scene.halfway(client)
        session = client.events()[0]["session"]
        client.process.kill()
        client.wait()
        shown = completed(client.events())
    path = scene.home / "sessions" / f"{session}.jsonl"
    data = path.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(data[: last + (len(data) - last) // 2])
    scene.start_again(session, shown)


@contextmanager
def mounted(home: Path, size: str) -> Iterator[None]:
    """A file system of its own for the home."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount: a small file system is mounted")
    options = f"size={size},mode=700"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(home)], check=False).returncode != 0:
        pytest.skip("needs root that may mount: a small file system is mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=True)


def test_the_disk_fills_up(scene: Scene) -> None:
    scene.endings = [say("Now ", *(f"{number} " for number in range(20)), pause_s=0.1)]
    with mounted(scene.home, "2m"):
        with scene.server() as client:
            identity = scene.halfway(client)
            shown = completed(client.events())
            fill(scene.home / "full")
            result = client.reply(identity)["result"]
            assert result["text"].endswith("18 19 ")
            told = [event["text"] for event in client.events() if event["type"] == "notice"]
            assert told == ["This session is not being saved: No space left on device. The answer goes on."]
        (scene.home / "full").unlink()
        scene.start_again(result["session"], shown)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(512)):
            pass


def test_the_home_is_read_only(scene: Scene) -> None:
    scene.endings = [say("Now ", "done.")]
    with mounted(scene.home, "4m"):
        subprocess.run(["mount", "-o", "remount,ro", str(scene.home)], check=True)
        with scene.server() as client:
            result = client.call("lyma/ask", {"prompt": "go"})["result"]
            assert result["text"] == "Working.\n\nNow done."
            told = [event["text"] for event in client.events() if event["type"] == "notice"]
            assert [text for text in told if "not being saved: Read-only file system" in text]
            assert [text for text in told if "cannot be undone" in text]
            client.call("shutdown")
            client.notify("exit")
            assert client.wait() == 0
            assert b"Traceback" not in client.errors
        subprocess.run(["mount", "-o", "remount,rw", str(scene.home)], check=True)
        scene.file.write_bytes(BEFORE)
        scene.endings = [hang("Now ")]
        with scene.server() as client:
            scene.halfway(client)
            shown, session = completed(client.events()), client.events()[0]["session"]
            client.process.stdin.close()
            client.wait()
        scene.start_again(session, shown, "cancelled")


@pytest.mark.parametrize("jump_s", [YEAR_S, pytest.param(-YEAR_S, marks=pytest.mark.full)])
def test_the_clock_jumps(scene: Scene, tmp_path: Path, jump_s: int) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    scene.endings = [say("Now ", *(f"{number} " for number in range(10)), pause_s=0.1)]
    with scene.server() as client:
        earlier = client.call("lyma/ask", {"prompt": "again"})["result"]["session"]
    command = [sys.executable, "-m", "tests.editors.jumping_server"]
    with scene.server(command, CLOCK=str(clock)) as client:
        identity = scene.halfway(client)
        clock.write_text(str(jump_s))
        result = client.reply(identity)["result"]
        events = client.events()
        assert result["text"].endswith("8 9 ")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        listed = client.call("lyma/sessions", {"action": "list"})["result"]["sessions"]
        assert {each["session"] for each in listed} == {earlier, result["session"]}
    scene.start_again(result["session"], completed(events), "end_turn")


def test_the_configuration_becomes_unreadable(scene: Scene) -> None:
    scene.endings = [say("Now ", *(f"{number} " for number in range(5)), pause_s=0.1)]
    config = scene.home / "config.toml"
    config.touch(0o600)
    with scene.server() as client:
        identity = scene.halfway(client)
        config.chmod(0o644)
        result = client.reply(identity)["result"]
        assert result["text"].endswith("3 4 ")
        assert client.call("lyma/ask", {"prompt": "again"})["result"]["text"] == "Welcome back."
        shown = completed(client.events(result["turn"]))
    with scene.server() as client:
        error = client.call("lyma/ask", {"prompt": "again"})["error"]
        assert error["data"]["kind"] == "config_error"
        assert "chmod 600" in error["message"]
        config.chmod(0o600)
        assert client.call("lyma/ask", {"prompt": "again"})["result"]["text"] == "Welcome back."
    scene.start_again(result["session"], shown, "end_turn")
