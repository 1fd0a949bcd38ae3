"""`lyma/ask` over real pipes: events, progress, cancellation, errors, and editors without a plugin."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.editors.fake_server import SECRET
from tests.raw_client import RawClient

LYMA = {"experimental": {"lyma": {"protocolVersion": 1, "events": {}}}}
SILENT = {"experimental": {"lyma": {"protocolVersion": 1}}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory):
    with RawClient(env={"LYMA_HOME": str(tmp_path_factory.mktemp("home"))}) as client:
        client.initialize(LYMA)
        yield client


def ask(client: RawClient, prompt: str, **params: Any) -> dict[str, Any]:
    return client.call("lyma/ask", {"prompt": prompt, **params})


def test_initialize_says_what_there_is() -> None:
    with RawClient() as client:
        result = client.initialize()
        assert result["serverInfo"]["name"] == "lyma"
        assert result["capabilities"]["experimental"]["lyma"]["protocolVersion"] == 1
        assert client.call("initialize", {"capabilities": {}})["error"]["code"] == -32600


@pytest.mark.parametrize("params", [None, [], {"capabilities": 3}, {"processId": "1", "capabilities": {}}])
def test_initialize_may_be_tried_again(params: Any) -> None:
    with RawClient() as client:
        error = client.call("initialize", params)["error"]
        assert error["code"] == -32602
        assert "params" in error["message"]
        client.initialize()


def test_events_come_before_the_answer_and_none_after(client: RawClient) -> None:
    identity = client.request("lyma/ask", {"prompt": "say one two three"})
    result = client.reply(identity)["result"]
    ask(client, "say more")
    events = client.events(result["turn"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [events[0]["type"], events[-1]["type"]] == ["turn.started", "turn.completed"]
    assert "".join(event["text"] for event in events if event["type"] == "item.delta") == "one two three "
    last = max(n for n, m in enumerate(client.messages) if m.get("params", {}).get("turn") == result["turn"])
    assert client.messages.index(client.reply(identity)) > last


def test_events_are_for_those_who_take_them() -> None:
    with RawClient() as client:
        client.initialize(SILENT)
        assert ask(client, "say x")["result"]["text"] == "x "
        assert client.events() == []
    with RawClient() as client:
        client.initialize(initializationOptions=LYMA["experimental"])
        ask(client, "say x")
        assert client.events() != []


def test_progress_frames_the_turn(client: RawClient) -> None:
    ask(client, "say x", workDoneToken="token-1")
    values = [p["value"] for p in client.notifications("$/progress") if p["token"] == "token-1"]
    assert values[0]["kind"] == "begin"
    assert values[0]["cancellable"] is True
    assert {value["kind"] for value in values[1:-1]} == {"report"}
    assert values[-1] == {"kind": "end", "message": "done"}


def test_progress_ends_where_the_turn_fails(client: RawClient) -> None:
    ask(client, "fail", workDoneToken=77)
    values = [p["value"]["kind"] for p in client.notifications("$/progress") if p["token"] == 77]
    assert values == ["begin", "report", "end"]


@pytest.mark.parametrize("prompt", ["hang", "stream 0.01", "stream 0"])
@pytest.mark.parametrize("how", ["request", "progress", "command"])
def test_a_cancelled_turn_says_so(client: RawClient, prompt: str, how: str) -> None:
    token = f"{prompt}/{how}"
    identity = client.request("lyma/ask", {"prompt": prompt, "workDoneToken": token})
    turn = client.wait_for(lambda m: m.get("method") == "$/progress" and m["params"]["token"] == token)
    start = time.monotonic()
    if how == "request":
        client.notify("$/cancelRequest", {"id": identity})
    elif how == "progress":
        client.notify("window/workDoneProgress/cancel", {"token": token})
    else:
        reply = client.call("workspace/executeCommand", {"command": "lyma.cancel"})
        assert reply["result"] == {"cancelled": 1}
    result = client.reply(identity)["result"]
    assert time.monotonic() - start < 2
    assert result["stopReason"] == "cancelled"
    assert turn is not None
    assert client.events(result["turn"])[-1]["type"] == "turn.completed"
    client.notify("$/cancelRequest", {"id": identity})
    client.call("lyma/status")
    assert len(client.replies(identity)) == 1


@pytest.mark.parametrize("method", ["lyma/ask", "workspace/executeCommand"])
@pytest.mark.parametrize("build_s", ["0.2", "30"])
def test_a_cancellation_before_the_core_is_there(method: str, build_s: str) -> None:
    """Soon enough the ask ends as a turn that did nothing; else there is no turn."""
    with RawClient(env={"FAKE_BUILD_S": build_s}) as client:
        client.initialize()
        params = {"prompt": "say x"} if method == "lyma/ask" else {"command": "lyma.ask", "arguments": ["say x"]}
        identity = client.request(method, params)
        client.notify("$/cancelRequest", {"id": identity})
        start = time.monotonic()
        reply = client.reply(identity)
        assert time.monotonic() - start < 2
        if build_s == "30":
            assert reply["error"]["code"] == -32800
            assert client.events() == []
        else:
            assert (reply["result"]["stopReason"], reply["result"]["text"]) == ("cancelled", "")


def test_children_inherit_three_descriptors() -> None:
    """And the shell's own, through which it reads the folder."""
    with RawClient() as client:
        client.initialize()
        ask(client, "print x")
        listed = bytes(client.errors).partition(b"descriptors: ")[2].split(b"\n")[0].split()
        assert {int(name.rpartition(b"/")[2]) for name in listed} <= {0, 1, 2, 3}
        assert len(listed) >= 3


def test_other_requests_are_cancelled_too(client: RawClient) -> None:
    identity = client.request("lyma/models", {"provider": "slow"})
    client.notify("$/cancelRequest", {"id": identity})
    assert client.reply(identity)["error"]["code"] == -32800


def test_several_sessions_at_once(client: RawClient) -> None:
    slow = client.request("lyma/ask", {"prompt": "hang"})
    assert ask(client, "say x")["result"]["text"] == "x "
    client.notify("$/cancelRequest", {"id": slow})
    client.reply(slow)


def test_one_turn_a_session(client: RawClient) -> None:
    first = client.request("lyma/ask", {"prompt": "hang", "session": "mine"})
    second = client.request("lyma/ask", {"prompt": "say x", "session": "mine", "workDoneToken": "busy"})
    error = client.reply(second)["error"]
    assert (error["code"], error["data"]["kind"], error["data"]["retryable"]) == (-31003, "session_busy", True)
    assert error["data"]["turn"]
    client.notify("$/cancelRequest", {"id": first})
    client.reply(first)
    assert ask(client, "say x", session="mine")["result"]["session"] == "mine"
    values = [p["value"]["kind"] for p in client.notifications("$/progress") if p["token"] == "busy"]
    assert values == ["begin", "end"]


def test_the_65th_turn_is_refused(client: RawClient) -> None:
    running = [client.request("lyma/ask", {"prompt": "hang"}) for _ in range(64)]
    error = ask(client, "say x")["error"]
    assert (error["code"], error["data"]["kind"]) == (-31009, "server_busy")
    client.call("workspace/executeCommand", {"command": "lyma.cancel"})
    assert {client.reply(identity)["result"]["stopReason"] for identity in running} == {"cancelled"}
    assert "result" in ask(client, "say x")


def test_an_error_has_its_kind_and_no_secret(client: RawClient) -> None:
    error = ask(client, "fail")["error"]
    assert error["code"] == -31006
    assert error["data"] == {"kind": "provider_error", "retryable": True, "attempts": [{"statusText": "[redacted]"}]}
    assert error["message"] == "No provider answered; the key [redacted] is refused."


def test_what_nobody_foresaw_is_an_incident() -> None:
    with RawClient() as client:
        client.initialize()
        error = ask(client, "crash")["error"]
        assert error == {
            "code": -32603,
            "message": "Internal error, incident 1; the details are in Lyma's log.",
            "data": {"kind": "internal_error", "retryable": False, "incident": 1},
        }
        client.call("shutdown")
        client.notify("exit")
        client.wait()
        assert b"incident 1" in client.errors
        assert b"Traceback" in client.errors
        assert SECRET.encode() not in client.errors


def test_what_the_machine_refuses_is_no_incident(client: RawClient) -> None:
    error = ask(client, "fill")["error"]
    assert error == {
        "code": -32603,
        "message": "A file of Lyma's or of the workspace: no space left on device; make room there.",
        "data": {"kind": "internal_error", "retryable": True},
    }


def test_a_broken_configuration_is_told_and_may_be_mended() -> None:
    with RawClient(env={"FAKE_BROKEN": "1"}) as client:
        client.initialize()
        for _ in range(2):
            error = ask(client, "say x")["error"]
            assert (error["code"], error["data"]["line"], error["data"]["key"]) == (-31010, 3, "order")


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "prompt"),
        ({"prompt": 3}, "prompt"),
        ({"prompt": "x", "tools": "false"}, "tools"),
        ({"prompt": "x", "context": {"active": {"uri": 1}}}, "context.active.uri"),
    ],
)
def test_wrong_params_name_the_field(client: RawClient, params: dict[str, Any], field: str) -> None:
    error = client.call("lyma/ask", params)["error"]
    assert (error["code"], error["data"]["kind"], error["data"]["field"]) == (-32602, "invalid_params", field)


def test_a_prompt_of_ten_mebibytes(client: RawClient) -> None:
    assert ask(client, "length " + "é" * (5 << 20))["result"]["text"] == str(10 << 20)


def test_a_message_over_the_limit_is_refused_and_the_connection_lives(client: RawClient) -> None:
    error = ask(client, "length " + "e" * (65 << 20))["error"]
    assert error["code"] == -32600
    assert str(64 << 20) in error["message"]
    assert ask(client, "say x")["result"]["text"] == "x "


# Editors without a plugin


def test_a_plain_client_gets_a_document(tmp_path: Path) -> None:
    with RawClient(env={"LYMA_HOME": str(tmp_path)}) as client:
        client.initialize({"window": {"showDocument": {"support": True}}})
        shown = []
        client.answers["window/showDocument"] = lambda params: shown.append(params) or {"success": True}
        for prompt in ("say hello", {"prompt": "say again", "session": "s1"}):
            result = client.call("workspace/executeCommand", {"command": "lyma.ask", "arguments": [prompt]})["result"]
            assert result["session"] == "s1"
        path = Path(shown[0]["uri"].removeprefix("file://"))
        assert path.read_text() == "> say hello\n\nhello \n\n> say again\n\nagain \n\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert client.events() == []
        assert client.notifications("window/showMessage") == []


def test_a_plainer_client_gets_a_message(client: RawClient) -> None:
    params = {"command": "lyma.ask", "arguments": ["say hello"], "workDoneToken": "plain"}
    assert client.call("workspace/executeCommand", params)["result"]["text"] == "hello "
    assert client.notifications("window/showMessage")[-1]["message"] == "hello "
    assert any(p["token"] == "plain" for p in client.notifications("$/progress"))


def test_a_plain_client_is_told_of_an_error(client: RawClient) -> None:
    reply = client.call("workspace/executeCommand", {"command": "lyma.ask", "arguments": ["fail"]})
    assert reply["error"]["code"] == -31006
    shown = client.notifications("window/showMessage")[-1]
    assert (shown["type"], shown["message"]) == (1, "No provider answered; the key [redacted] is refused.")


@pytest.mark.parametrize(
    "params",
    [
        {"command": "lyma.nothing"},
        {"command": "lyma.ask"},
        {"command": "lyma.ask", "arguments": [3]},
        {"command": "lyma.ask", "arguments": ["a", "b"]},
        {"command": "lyma.cancel", "arguments": [3]},
    ],
)
def test_wrong_commands_are_refused(client: RawClient, params: dict[str, Any]) -> None:
    assert client.call("workspace/executeCommand", params)["error"]["code"] == -32602


def test_the_status_in_a_sentence(client: RawClient) -> None:
    client.call("workspace/executeCommand", {"command": "lyma.status"})
    assert "fake: m" in client.notifications("window/showMessage")[-1]["message"]


# The person


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"title": "Allow"}, "True"),
        ({"title": "Refuse"}, "False"),
        (None, "None"),
        ({"title": "Yes"}, "None"),
        ("Allow", "None"),
        ([], "None"),
    ],
)
def test_only_allow_is_yes(client: RawClient, answer: Any, said: str) -> None:
    asked = []
    client.answers["window/showMessageRequest"] = lambda params: asked.append(params) or answer
    assert ask(client, "confirm rm x")["result"]["text"] == said
    assert asked[0]["message"] == "Run this?\nrm x"
    assert [action["title"] for action in asked[0]["actions"]] == ["Allow", "Refuse"]


def test_what_cannot_be_shown_in_full_is_not_asked(client: RawClient) -> None:
    before = len(client.messages)
    assert ask(client, "confirm " + "x" * 1000)["result"]["text"] == "None"
    assert all(m.get("method") != "window/showMessageRequest" for m in client.messages[before:])


def test_a_long_question_is_shown_in_a_document(tmp_path: Path) -> None:
    with RawClient(env={"LYMA_HOME": str(tmp_path)}) as client:
        client.initialize({"window": {"showDocument": {"support": True}}})
        shown = []
        client.answers["window/showDocument"] = lambda params: shown.append(params["uri"]) or {"success": True}
        client.answers["window/showMessageRequest"] = lambda _: {"title": "Allow"}
        assert ask(client, "confirm " + "x" * 1000)["result"]["text"] == "True"
        assert "x" * 1000 in Path(shown[0].removeprefix("file://")).read_text()


def test_a_cancellation_withdraws_the_question(client: RawClient) -> None:
    client.answers.pop("window/showMessageRequest", None)
    start = len(client.messages)
    identity = client.request("lyma/ask", {"prompt": "confirm y"})
    question = client.wait_for(lambda m: m.get("method") == "window/showMessageRequest", start=start)
    client.notify("$/cancelRequest", {"id": identity})
    assert client.reply(identity)["result"]["stopReason"] == "cancelled"
    client.wait_for(lambda m: m.get("method") == "$/cancelRequest" and m["params"]["id"] == question["id"])


def test_an_error_for_an_answer_is_no_answer(client: RawClient) -> None:
    client.answers.pop("window/showMessageRequest", None)
    start = len(client.messages)
    identity = client.request("lyma/ask", {"prompt": "confirm z"})
    question = client.wait_for(lambda m: m.get("method") == "window/showMessageRequest", start=start)
    client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
    assert client.reply(identity)["result"]["text"] == "None"
