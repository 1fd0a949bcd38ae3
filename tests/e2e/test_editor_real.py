"""The real server, the real core, and a provider on loopback."""

from __future__ import annotations

import random
import stat
import time
from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.editor.features.uris import to_uri
from tests.editors.real_server import COMMAND, last_words, settings
from tests.raw_client import RawClient
from tests.stub_provider import Reply, Request, StubProvider, call_tool, hang, never_answer, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OFFSETS = 200
LIMIT_S = 2.0


def answer(request: Request) -> Reply:
    """Does as the last thing said asks for."""
    messages = request.body["messages"]
    said = last_words(request)
    if "before the first token" in said:
        return never_answer()
    if "in the stream" in said:
        return say(*(f"{number} " for number in range(2000)), pause_s=0.01)
    if "in a tool" in said:
        return call_tool("search", {"pattern": "x"}) if messages[-1]["role"] != "tool" else hang("found ")
    if "edit" in said:
        edit = {"path": "a b.py", "edits": [{"old_text": "one", "new_text": "two"}]}
        return call_tool("edit_file", edit) if messages[-1]["role"] != "tool" else say("edited")
    return say("Hello", ", ", "wörld 😀", "!")


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider(answer) as stub:
        yield stub


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work space").resolve()
    for number in range(50):
        (root / f"{number}.txt").write_text("x\n" * 1000)
    return root


@pytest.fixture(scope="module")
def client(stub: StubProvider, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with RawClient(COMMAND, env=settings(stub, tmp_path_factory.mktemp("home"))) as client:
        client.initialize(workspaceFolders=[{"uri": to_uri(root), "name": "root"}])
        client.call("lyma/status")
        yield client


def ask(client: RawClient, prompt: str, **params: Any) -> dict[str, Any]:
    reply = client.call("lyma/ask", {"prompt": prompt, **params})
    assert "result" in reply, reply
    return reply["result"]


def test_an_answer_streams(client: RawClient) -> None:
    result = ask(client, "Hello?")
    assert (result["text"], result["stopReason"]) == ("Hello, wörld 😀!", "end_turn")
    events = client.events(result["turn"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert "".join(event["text"] for event in events if event["type"] == "item.delta") == result["text"]
    assert [event["class"] for event in events if event["type"] == "route"] == ["ok"]


def test_a_conversation_goes_on(client: RawClient, stub: StubProvider) -> None:
    session = ask(client, "Hello?")["session"]
    assert ask(client, "Hello again?", session=session)["session"] == session
    assert [m["role"] for m in stub.requests[-1].body["messages"]][-3:] == ["user", "assistant", "user"]


def test_ten_mebibytes_reach_the_provider(client: RawClient, stub: StubProvider) -> None:
    prompt = "Hello " + "é" * (5 << 20)
    assert ask(client, prompt, tools=False)["stopReason"] == "end_turn"
    assert len(stub.requests[-1].raw) > 5 << 20


@pytest.mark.parametrize("where", ["before the first token", "in the stream", "in a tool"])
@pytest.mark.parametrize("count", [10, pytest.param(OFFSETS // 3 + 1, marks=pytest.mark.full)])
def test_a_cancellation_at_any_moment_has_one_answer(
    client: RawClient, stub: StubProvider, where: str, count: int
) -> None:
    chance = random.Random(f"{where} {count}")
    for _ in range(count):
        before = len(stub.requests)
        identity = client.request("lyma/ask", {"prompt": f"wait {where}"})
        time.sleep(chance.choice((0, chance.uniform(0, 0.02), chance.uniform(0, 0.3))))
        start = time.monotonic()
        client.notify("$/cancelRequest", {"id": identity})
        reply = client.reply(identity)
        assert time.monotonic() - start < LIMIT_S
        assert "result" in reply, reply
        result = reply["result"]
        assert result["stopReason"] == "cancelled"
        assert client.events(result["turn"])[-1]["type"] == "turn.completed"
        for request in stub.requests[before:]:
            assert request.closed.wait(LIMIT_S) or request.done.is_set()
        client.notify("$/cancelRequest", {"id": identity})
        heard = len(client.events(result["turn"]))
        client.call("lyma/status")
        assert len(client.replies(identity)) == 1
        assert len(client.events(result["turn"])) == heard


def test_a_stream_that_is_cancelled_keeps_what_was_said(client: RawClient, stub: StubProvider) -> None:
    start = len(client.messages)
    identity = client.request("lyma/ask", {"prompt": "wait in the stream"})
    client.wait_for(lambda m: m.get("params", {}).get("type") == "item.delta", start=start)
    client.notify("$/cancelRequest", {"id": identity})
    assert client.reply(identity)["result"]["text"].startswith("0 ")
    assert stub.requests[-1].closed.wait(LIMIT_S)


def test_an_open_file_is_edited_in_the_editor(stub: StubProvider, tmp_path: Path) -> None:
    root = (tmp_path / "root").resolve()
    root.mkdir()
    path = root / "a b.py"
    path.write_text("one\n")
    with RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        client.initialize(
            {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}},
            workspaceFolders=[{"uri": to_uri(root), "name": "root"}],
        )
        document = {"uri": to_uri(path), "version": 4}
        client.notify(
            "textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "text": "# new\none\n"}}
        )
        taken = []

        def apply(params: dict[str, Any]) -> dict[str, bool]:
            taken.extend(params["edit"]["documentChanges"])
            changed = {"textDocument": {**document, "version": 5}, "contentChanges": [{"text": "# new\ntwo\n"}]}
            client.notify("textDocument/didChange", changed)
            return {"applied": True}

        client.answers["workspace/applyEdit"] = apply
        result = ask(client, "edit it")
        assert result["text"] == "edited"
        assert [edit["uri"] for edit in result["edits"]] == [to_uri(path)]
        assert taken[0]["textDocument"] == document
        assert taken[0]["edits"][0]["newText"] == "two\n"
        assert path.read_text() == "one\n"


def test_the_log_is_private_and_holds_no_conversation(stub: StubProvider, tmp_path: Path) -> None:
    with RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client:
        client.initialize()
        client.call("lyma/status")
        ask(client, "Hello, unspeakable")
        client.call("shutdown")
        client.notify("exit")
        client.wait()
        assert bytes(client.errors) == b""
    log = tmp_path / "home" / "log" / "server.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    text = log.read_text()
    assert "the client said exit" in text
    assert "unspeakable" not in text
    assert "wörld" not in text


def test_a_configuration_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("order = 3\n")
    (home / "config.toml").chmod(0o600)
    with RawClient(COMMAND, env={"LYMA_HOME": str(home)}) as client:
        client.initialize()
        error = client.call("lyma/ask", {"prompt": "x"})["error"]
        assert (error["code"], error["data"]["kind"], error["data"]["line"]) == (-31010, "config_error", 1)
        (home / "config.toml").write_text("")
        assert "result" in client.call("lyma/status")
        client.call("shutdown")
        client.notify("exit")
        assert client.wait() == 0
        assert b"Traceback" not in client.errors


@pytest.mark.parametrize("where", ["before the first token", "in the stream", "in a tool"])
def test_the_end_of_the_input_in_a_turn_ends_all(stub: StubProvider, root: Path, tmp_path: Path, where: str) -> None:
    with RawClient(COMMAND, env=settings(stub, tmp_path)) as client:
        client.initialize(workspaceFolders=[{"uri": to_uri(root), "name": "root"}])
        before = len(stub.requests)
        client.request("lyma/ask", {"prompt": f"wait {where}"})
        request = stub.wait_for_request(before + 1)
        start = time.monotonic()
        client.process.stdin.close()
        assert client.wait() == 1
        assert time.monotonic() - start < LIMIT_S
        assert request.closed.wait(LIMIT_S) or request.done.is_set()
        assert bytes(client.errors) == b""
