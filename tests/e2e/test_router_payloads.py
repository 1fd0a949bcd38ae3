"""Every failure on record, replayed over loopback through the real SDKs: three keys in two accounts, and a second provider."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from lyma_server.errors import AllFailed, StreamInterrupted
from lyma_server.router.chat import Message, Text, ToolCall, ToolResult
from lyma_server.router.database import Database
from lyma_server.router.router import Router
from lyma_server.router.state import State
from tests.routing import Outcome, ask, make_keys, make_provider, make_settings
from tests.stub_provider import Reply, StubProvider, call_tool, never_answer, refusing_url, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.router.breaker import Breaker

ROWS = {row["id"]: row for row in json.loads((Path(__file__).parents[1] / "data/error_payloads.json").read_text())}
KEYS = make_keys(3, k1="work", k2="work", k3="home")
HISTORY = (
    Message("user", (Text("first question"),)),
    Message("assistant", (ToolCall("c1", "read_file", {"path": "a"}),)),
    Message("user", (ToolResult("c1", "long output " * 500),)),
    Message("assistant", (Text("answer"),)),
    Message("user", (Text("last question"),)),
)
NEXT = {
    "accept": "done",
    "accept_as_empty_object": "done",
    "do_not_execute_reissue": "done",
    "fail": "fail",
    "next_provider": "fallback",
    "next_provider_or_shrink": "fallback",
    "next_provider_or_stream_interrupted": "fallback",
    "repair_retry_once": "repair",
    "retry_same_once_then_next_provider": "retry",
    "rotate_key": "rotate",
    "rotate_key_once_then_next_provider": "rotate",
    "shrink": "shrink",
    "shrink_max_tokens_then_history": "shrink",
    "stream_interrupted": "fail",
    "wait_poll_or_next_provider": "wait",
}
SUBJECTS = {
    "none": set(),
    "disable": {"key:1"},
    "disable_account": {"account:work"},
    "cooldown_account_model": {"account:work"},
    "block_model": {"key:1"},
}
ANSWERED = say("answered")


@attrs.frozen
class Replay:
    """What a row led to."""

    row: dict[str, Any]
    outcome: Outcome
    asked: list[str]
    marks: set[tuple[str, str]]
    opened: list[float]
    breaker: Breaker
    saved: bytes


def is_anthropic(row: dict[str, Any]) -> bool:
    return row["provider"] == "anthropic" or "anthropic" in row["id"]


def reply_of(row: dict[str, Any]) -> Reply:
    phase, body = row["phase"], row["body"]
    if phase == "semantic":
        function = body["tool_calls"][0]["function"]
        if "finish_reason" not in body:
            return call_tool(function["name"], function["arguments"])
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": body["tool_calls"]}, "finish_reason": "length"}]}
        return Reply(
            body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", headers={"content-type": "text/event-stream"}
        )
    if phase == "sse_stall":
        return say(end="keep_alive")
    if phase == "sse_eof":
        return say(end="eof")
    if phase == "transport":
        return never_answer()
    if phase in {"sse_first", "sse_mid"}:
        before = 'data: {"choices": [{"index": 0, "delta": {"content": "he"}}]}\n\n'
        if is_anthropic(row):
            before = (
                'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "he"}}\n\n'
            )
        return Reply(body=(before if phase == "sse_mid" else "") + row["raw_sse"], headers=row["headers"])
    text = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
    headers = {name: value for name, value in row["headers"].items() if name != "content-length"}
    return Reply(status=row["status"], body=text, headers=headers)


async def speak_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    writer.close()


def url_of(row: dict[str, Any], stub: StubProvider, plain: asyncio.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    url = stub.url if is_anthropic(row) else stub.openai_url
    if row["id"] == "conn_refused":
        return refusing_url()
    if row["id"] == "tls_fail":
        return f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1"
    if row["id"] == "dns_fail":
        ask_resolver = socket.getaddrinfo

        def resolve(host: Any, *more: Any, **named: Any) -> Any:
            if host == "nowhere.example":
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return ask_resolver(host, *more, **named)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        return "http://nowhere.example/v1"
    return url


async def replay(row: dict[str, Any], path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    """Ask once: the row's reply comes first, and then an answer."""
    with ExitStack() as stack:
        once: list[Reply] = [reply_of(row), ANSWERED]
        stub = stack.enter_context(StubProvider(once))
        plain = await asyncio.start_server(speak_no_tls, "127.0.0.1", 0)
        stack.callback(plain.close)
        second = stack.enter_context(StubProvider([say("second")]))
        api = "anthropic" if is_anthropic(row) else "openai"
        first = make_provider(url_of(row, stub, plain, monkeypatch), api, name=row["provider"], keys=KEYS)
        state = State(Database(path))
        settings = make_settings(first_content_s=0.3 if row["expected_class"] in {"stalled", "timeout"} else 60)
        router = Router((first, make_provider(second, name="second")), settings, state)
        outcome = await ask(router, messages=HISTORY)
        breaker = router._fleet.station(first, "m").breaker
        await router.close()
    names = {f"key:{key.fingerprint}": f"key:{number}" for number, key in enumerate(KEYS, 1)}
    with sqlite3.connect(path) as saved:
        marks = {
            (names.get(subject, subject), reason)
            for subject, reason in saved.execute("SELECT subject, reason FROM marks")
        }
        opened = [seconds for (seconds,) in saved.execute("SELECT seconds FROM breakers")]
    saved.close()
    asked = [request.key[-1] for request in stub.requests]
    files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    return Replay(row, outcome, asked, marks, opened, breaker, files)


def check_request(seen: Replay) -> None:
    row, outcome = seen.row, seen.outcome
    wanted, class_ = row["expected_action"]["request"], row["expected_class"]
    if wanted == "do_not_execute_reissue":
        call = outcome.completed.message.blocks[-1]
        assert isinstance(call, ToolCall)
        assert (outcome.completed.finish, call.arguments) == ("max_tokens", None)
        return
    assert (outcome.attempts[0].class_, outcome.attempts[0].next) == (class_, NEXT[wanted])
    if wanted == "stream_interrupted":
        assert isinstance(outcome.error, StreamInterrupted)
        assert outcome.error.partial == "he"
    elif wanted == "fail":
        assert isinstance(outcome.error, AllFailed)
    else:
        assert outcome.error is None
        assert outcome.attempts[-1].class_ == "ok"
    if wanted == "accept_as_empty_object":
        call = outcome.completed.message.blocks[-1]
        assert isinstance(call, ToolCall)
        assert call.arguments == {}


def check_key(seen: Replay) -> None:
    action, class_ = seen.row["expected_action"]["key"], seen.row["expected_class"]
    subjects = SUBJECTS[action]
    if seen.row["expected_action"]["provider"] == "disable_provider" or class_ == "capability_missing":
        subjects = {"provider"}
    assert seen.marks == {(subject, class_) for subject in subjects}
    if action in {"disable_account", "cooldown_account_model"}:
        assert seen.asked[:2] == ["1", "3"]
    elif NEXT[seen.row["expected_action"]["request"]] == "rotate":
        assert seen.asked[:2] == ["1", "2"]


def check_provider(seen: Replay) -> None:
    action = seen.row["expected_action"]["provider"]
    assert seen.opened == {"breaker_open_10s": [10.0], "breaker_open_30s": [30.0]}.get(action, [])
    failures = [failed for _, failed in seen.breaker._outcomes if failed]
    assert len(failures) == (action == "breaker_fail")


@pytest.mark.parametrize("name", ROWS)
async def test_each_failure_on_record_is_met_as_it_should_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await replay(ROWS[name], tmp_path / "state.db", monkeypatch)
    checks: tuple[Callable[[Replay], None], ...] = (check_request, check_key, check_provider)
    for check in checks:
        check(seen)
    told = repr([seen.outcome.error and (seen.outcome.error.message, seen.outcome.error.data)]).encode() + seen.saved
    assert not any(key.secret and key.secret.reveal().encode() in told for key in KEYS)


def test_all_rows_are_there() -> None:
    assert len(ROWS) == 67
