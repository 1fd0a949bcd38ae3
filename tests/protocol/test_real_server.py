"""protocol.md against the real server: a client that was written from it alone, with a provider on loopback."""

from __future__ import annotations

import sys

import pytest

from lyma_server.editor.rpc import envelope
from lyma_server.protocol.convert import structure
from lyma_server.protocol.events import Event
from lyma_server.protocol.messages import AskResult, ModelsResult, SessionsResult, StatusResult
from lyma_server.protocol.tables import STANDARD_ERRORS
from tests.protocol.minimal_client import Client
from tests.stub_provider import StubProvider, call_tool, say

COMMAND = [sys.executable, "-m", "lyma_server", "serve"]


@pytest.fixture
def stub():
    with StubProvider([call_tool("read_file", {"path": "a.txt"}), say("It says ", "hello.")]) as stub:
        yield stub


@pytest.fixture
def client(stub, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("hello\n")
    monkeypatch.setenv("LYMA_ORDER", "local")
    monkeypatch.setenv("LYMA_PROVIDERS__LOCAL__BASE_URL", stub.openai_url)
    monkeypatch.setenv("LYMA_PROVIDERS__LOCAL__MODEL", "m")
    client = Client(COMMAND, tmp_path)
    yield client
    assert client.close() == 0
    client.server.stdin.close()
    client.server.stdout.close()


def test_the_handshake_is_as_written(client):
    assert client.lyma["protocolVersion"] == 1
    assert client.lyma["events"] == {}


def test_an_ask_streams_and_answers_once(client):
    result = structure(AskResult, client.ask("what is in @a.txt?")["result"])
    assert (result.text, result.stop_reason) == ("It says hello.", "end_turn")
    events = [structure(Event, event) for event in client.events]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {(event.session, event.turn) for event in events} == {(result.session, result.turn)}
    assert (events[0].body.type, events[-1].body.type) == ("turn.started", "turn.completed")
    deltas = "".join(event.body.text for event in events if event.body.type == "item.delta" and event.body.text != "")
    assert "It says hello." in deltas


def test_sessions_are_listed_replayed_copied_and_removed(client):
    session = client.ask("hi")["result"]["session"]
    live, client.events = client.events, []
    listed = structure(SessionsResult, client.request("lyma/sessions", {"action": "list"})["result"])
    assert [info.session for info in listed.sessions] == [session]
    loaded = client.request("lyma/sessions", {"action": "load", "session": session})["result"]
    assert loaded == client.request("lyma/sessions", {"action": "list"})["result"]
    assert client.events
    assert all(event["replay"] for event in client.events)
    completed = [event["item"] for event in live if event["type"] == "item.completed"]
    assert [event["item"] for event in client.events if event["type"] == "item.completed"] == completed
    copy = client.request("lyma/sessions", {"action": "fork", "session": session})["result"]["sessions"][0]["session"]
    assert copy != session
    assert client.ask("and now?", session=copy)["result"]["session"] == copy
    assert client.request("lyma/sessions", {"action": "delete", "session": session})["result"]["sessions"] == []
    gone = client.request("lyma/sessions", {"action": "load", "session": session})["error"]
    assert (gone["code"], gone["data"]["kind"]) == (-31004, "session_not_found")
    assert client.request("lyma/sessions", {"action": "load"})["error"]["code"] == -32602


def test_status_and_models_answer_as_written(client):
    status = structure(StatusResult, client.request("lyma/status", {})["result"])
    assert [provider.name for provider in status.providers] == ["local"]
    models = structure(ModelsResult, client.request("lyma/models", {})["result"])
    assert [model.id for model in models.models] == ["stub-model"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"prompt": "x", "tool": False}, "The AskParams has unknown fields: tool."),
        ({"prompt": "x", "budget": {"maxStep": 1}}, "`budget` has unknown fields: maxStep."),
        ({"prompt": 7}, "`prompt` must be a string or a list, not an integer."),
        ({}, "`prompt` is missing."),
    ],
)
def test_a_wrong_request_is_refused_by_name(client, params, message):
    error = client.request("lyma/ask", params)["error"]
    assert (error["code"], error["message"]) == (-32602, message)
    assert error["data"]["kind"] == "invalid_params"
    assert client.request("lyma/status", {"partialResultToken": 3})["result"]["protocol"] == 1


def test_nobody_to_ask_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("LYMA_ORDER", "openai")
    monkeypatch.setenv("LYMA_PROVIDERS__OPENAI__KEYS", "env:NOT_THERE")
    client = Client(COMMAND, tmp_path)
    error = client.ask("hi")["error"]
    assert (error["code"], error["data"]["kind"]) == (-31010, "config_error")
    assert "NOT_THERE" in error["message"]
    status = client.request("lyma/status", {})["result"]
    assert status["providers"][0]["keys"][0]["state"] == "missing"
    client.close()
    client.server.stdin.close()
    client.server.stdout.close()


def test_what_comes_before_initialize_is_refused_as_written(tmp_path):
    early = []

    class Hasty(Client):
        def request(self, method, params):
            if method == "initialize":
                early.append(super().request("lyma/status", {})["error"]["code"])
            return super().request(method, params)

    client = Hasty(COMMAND, tmp_path)
    assert early == [-32002]
    client.close()
    client.server.stdin.close()
    client.server.stdout.close()


def test_every_standard_code_of_the_document_is_used():
    used = {value for name, value in vars(envelope).items() if name.isupper() and isinstance(value, int) and value < 0}
    assert {code for code, _ in STANDARD_ERRORS} | {-32602} == used


def test_a_person_is_asked_by_a_client_that_can(stub, tmp_path, monkeypatch):
    """The client's person answers nothing first, then no, then yes; each time they see all of the agent."""
    monkeypatch.setenv("LYMA_ORDER", "local")
    monkeypatch.setenv("LYMA_PROVIDERS__LOCAL__BASE_URL", stub.openai_url)
    answers, seen = [None, False, True], []
    work = tmp_path / "app"
    work.mkdir()
    client = Client(COMMAND, work, lambda asked: seen.append(asked) or answers[len(seen) - 1])
    drafted = client.request("lyma/subagent", {"action": "draft", "template": "todo-triage"})["result"]
    compiled = client.request("lyma/subagent", {"action": "compile", "uri": drafted["uri"]})["result"]
    wanted = {"action": "approve", "hash": compiled["hash"]}
    kinds = [client.request("lyma/approve", wanted)["error"]["data"]["kind"] for _ in range(2)]
    assert kinds == ["approval_unavailable", "approval_denied"]
    assert client.request("lyma/approve", wanted)["result"]["state"] == "approved"
    assert client.request("lyma/approve", wanted)["result"]["state"] == "approved"
    assert len(seen) == 3
    assert all(compiled["hash"] in asked["title"] and "todo-triage" in asked["text"] for asked in seen)
    assert client.close() == 0
    client.server.stdin.close()
    client.server.stdout.close()
