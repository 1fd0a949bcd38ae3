"""Several processes and one state, clocks that jump, and what is told where nobody can answer."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.router.chat import Completed
from lyma_server.router.database import Database
from lyma_server.router.providers.base import Key
from lyma_server.router.router import Router
from lyma_server.router.state import State
from lyma_server.secret import Secret
from tests.lyma import environment, run_lyma
from tests.protocol.minimal_client import Client
from tests.routing import ask, make_keys, make_provider, make_request, make_settings
from tests.stub_provider import StubProvider, fail, html, refusing_url, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.protocol.events import Attempt
    from tests.stub_provider import Reply, Request

DAY_S = 86_400
KEYS = ("sk-shared-0123456789abcde-1", "sk-shared-0123456789abcde-2")
THREE_HOURS = {"retry-after": "10800"}


def configured(name: str, url: str, keys: str = "") -> dict[str, str]:
    prefix = f"LYMA_PROVIDERS__{name.upper()}__"
    return {f"{prefix}BASE_URL": url, f"{prefix}MODEL": "m", **({f"{prefix}KEYS": keys} if keys else {})}


def limiting(*limited: str) -> Callable[[Request], Reply]:
    """Hold off the keys that end with one of these."""
    return lambda request: fail(429, headers=THREE_HOURS) if request.key[-1] in limited else say("ok")


def test_a_key_cooled_by_one_process_is_skipped_by_the_next() -> None:
    with StubProvider(limiting("1")) as stub:
        env = environment(LYMA_ORDER="work", **configured("work", stub.openai_url, ",".join(KEYS)))
        results = [run_lyma("ask", "--no-tools", "hi", env=env) for _ in range(3)]
    assert [result.stdout for result in results] == ["ok\n"] * 3
    assert [request.key[-1] for request in stub.requests] == ["1", "2", "2", "2"]


async def test_a_key_cooled_by_one_process_is_skipped_by_another_that_runs() -> None:
    limited: list[str] = []
    home = Path(os.environ["LYMA_HOME"])
    home.mkdir(mode=0o700)
    with StubProvider(lambda request: limiting(*limited)(request)) as stub:
        keys = tuple(Key(Secret(key)) for key in KEYS)
        router = Router(
            (make_provider(stub, name="work", keys=keys),), make_settings(), State(Database(home / "state.db"))
        )
        before = await ask(router)
        limited.append("1")
        env = environment(LYMA_ORDER="work", **configured("work", stub.openai_url, ",".join(KEYS)))
        other = await asyncio.to_thread(run_lyma, "ask", "--no-tools", "hi", env=env)
        after = await ask(router)
        standing = router.status()[0].keys[0].state
        await router.close()
    assert (before.keys, other.stdout, after.keys) == (["1"], "ok\n", ["2"])
    assert standing == "cooling"
    assert [request.key[-1] for request in stub.requests] == ["1", "1", "2", "2"]


@pytest.mark.parametrize("status", [401, 402])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("keys", "wake"), "Asked again from now on: work.\n"),
        (("keys", "wake", "work"), "Asked again from now on: work.\n"),
        (("doctor",), f"key …{KEYS[0][-4:]} of work works, so it is asked again: it had been put aside\n"),
    ],
)
async def test_a_key_that_the_person_mended_is_asked_again_by_a_router_that_runs(words, said, status) -> None:
    refused = ["1"]
    home = Path(os.environ["LYMA_HOME"])
    home.mkdir(mode=0o700)
    with StubProvider(lambda request: fail(status) if request.key[-1] in refused else say("ok")) as stub:
        keys = tuple(Key(Secret(key)) for key in KEYS)
        router = Router(
            (make_provider(stub, name="work", keys=keys),), make_settings(), State(Database(home / "state.db"))
        )
        asked = [(await ask(router, session=name)).keys for name in ("a", "b")]
        refused.clear()
        rested = router.status()[0].keys[0].state
        env = environment(LYMA_ORDER="work", **configured("work", stub.openai_url, ",".join(KEYS)))
        told = await asyncio.to_thread(run_lyma, *words, env=env)
        again = await asyncio.to_thread(run_lyma, *words, env=env)
        woken = router.status()[0].keys[0].state
        await router.close()
    assert (asked, rested, woken) == ([["1", "2"], ["2"]], "disabled", "ready")
    assert said in told.stdout
    assert said not in again.stdout
    assert KEYS[0] not in told.stdout + again.stdout


def test_waking_where_nothing_rests_or_nobody_is() -> None:
    assert run_lyma("keys", "wake").stdout == "No key had been put aside.\n"
    unknown = run_lyma("keys", "wake", "nobody")
    assert (unknown.returncode, "There is no provider nobody" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(("keys", "cooled"), [(2, "one"), (1, "two")], ids=["the next key", "the next provider"])
async def test_who_was_decided_on_is_asked_though_another_process_cools_it_meanwhile(
    tmp_path: Path, keys: int, cooled: str
) -> None:
    """Two servers that meet the same trouble at the same moment: between the decision and its step nobody was left."""
    with StubProvider([fail(500), say("ok")]) as first, StubProvider([say("ok")]) as second:
        stations = (make_provider(first, keys=make_keys(keys)), make_provider(second, name="two"))
        router = Router(stations, make_settings(), State(Database(tmp_path / "state.db")))
        other = State(Database(tmp_path / "state.db"))
        steps: list[tuple[str, str]] = []

        def cool(attempt: Attempt) -> None:
            steps.append((attempt.class_, attempt.next))
            other.open_breaker(cooled, "m", 60, "server_error")
            assert other.database.flush()

        events = [event async for event in router.stream(make_request(), cool)]
        await router.close()
        other.database.close()
    assert isinstance(events[-1], Completed)
    assert steps == [("server_error", "rotate" if keys == 2 else "fallback"), ("ok", "done")]


@pytest.mark.parametrize("jump", [DAY_S, -DAY_S, 10 * DAY_S, -10 * DAY_S])
async def test_a_clock_that_jumps_does_no_harm(tmp_path: Path, jump: int) -> None:
    shift = 0.0

    def open_router(*providers: Any) -> Router:
        state = State(Database(tmp_path / "state.db"), wall=lambda: time.time() + shift)
        return Router(providers, make_settings(), state)

    with StubProvider(limiting("1")) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, keys=make_keys(1)), make_provider(second, name="two"))
        running = open_router(*providers)
        first = await ask(running)
        shift = jump
        async with asyncio.timeout(20):
            again = await ask(running)
            new = open_router(*providers)
            fresh = await ask(new)
        asked = len(stub.requests)
        states = [router.status()[0].keys[0].state for router in (running, new)]
        await running.close()
        await new.close()
    assert {first.text, again.text, fresh.text} == {"other"}
    assert [attempt.class_ for attempt in again.attempts] == ["ok"]
    assert (asked, states) == (2, ["cooling", "cooling"])


async def test_three_hours_are_not_slept_while_another_key_or_provider_is_free() -> None:
    began = time.monotonic()
    with StubProvider(limiting("1", "2")) as stub, StubProvider([say("other")]) as second:
        providers = (make_provider(stub, keys=make_keys(3)), make_provider(second, name="two"))
        router = Router(providers, make_settings())
        texts = [(await ask(router, session=f"s{number}")).text for number in range(20)]
        pinned = await ask(router, provider="two")
        await router.close()
    assert texts == ["ok"] * 20
    assert pinned.text == "other"
    assert [request.key[-1] for request in stub.requests[:4]] == ["1", "2", "3", "3"]
    assert time.monotonic() - began < 20


def test_when_nobody_can_answer_each_is_listed_with_its_fault_and_the_earliest_retry(tmp_path: Path) -> None:
    with (
        StubProvider([fail(429, headers=THREE_HOURS)]) as limited,
        StubProvider([fail(401)]) as refusing,
        StubProvider([html(404)]) as lost,
    ):
        variables = {
            "LYMA_ORDER": "limited,refusing,lost,down",
            **configured("limited", limited.openai_url, KEYS[0]),
            **configured("refusing", refusing.openai_url, ",".join(KEYS)),
            **configured("lost", lost.openai_url, KEYS[1]),
            **configured("down", refusing_url()),
        }
        printed = run_lyma("ask", "--no-tools", "hi", env=environment(**variables, LYMA_HOME=str(tmp_path / "one")))
        error = ask_server(tmp_path, variables)["error"]
    assert printed.returncode == 4
    assert printed.stdout == ""
    sentence = printed.stderr.splitlines()[-1]
    for part in (
        "lyma: No provider could answer: limited (key …de-1) is limiting the rate of requests, next try in 3 h",
        f"refusing (2 keys) did not accept the key at {refusing.openai_url}, next try in 30 min",
        f"lost (key …de-2) has no such URL at {lost.openai_url}",
        "down could not be reached at http://127.0.0.1:",
    ):
        assert part in sentence
    assert not any(key in printed.stderr + str(error) for key in KEYS)
    assert (error["code"], error["data"]["kind"], error["data"]["retryable"]) == (-31006, "provider_error", True)
    assert error["message"].startswith("No provider could answer: limited (key …de-1) is limiting")
    assert [(row["provider"], row["class"]) for row in error["data"]["attempts"]] == [
        ("limited", "rate_limit"),
        ("refusing", "auth_invalid"),
        ("refusing", "auth_invalid"),
        ("lost", "wrong_url"),
        ("down", "connect_error"),
    ]
    assert error["data"]["attempts"][0]["words"] == "limited is limiting the rate of requests"
    assert 10_000_000 < error["data"]["attempts"][0]["retryAfterMs"] < 12_000_000
    assert 0 < error["data"]["retryAfterMs"] <= 10_000


def ask_server(tmp_path: Path, variables: dict[str, str]) -> dict[str, Any]:
    """Ask through the editor's server, in a home of its own; its answer."""
    command = [sys.executable, "-m", "lyma_server", "serve"]
    assignments = [f"{name}={value}" for name, value in {**variables, "LYMA_HOME": str(tmp_path / "two")}.items()]
    client = Client(["env", *assignments, *command], tmp_path)
    answer = client.ask("hi", tools=False)
    assert client.close() == 0
    client.server.stdin.close()
    client.server.stdout.close()
    return answer
