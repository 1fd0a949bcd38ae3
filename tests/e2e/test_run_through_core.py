"""Runs through all of Lyma but the faces: the real settings, router, mask and sandbox, with a stub for the provider."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time

import pytest

from lyma_server.compose import build_core
from lyma_server.factory.outcome import RunRequest
from tests.agents import bundle, plain_bundle
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import Reply, StubProvider, call_tool, fail, hang, say

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

QUIET = {"files__write": [], "tools__allow": ["fs.list"]}


@pytest.fixture
async def core_at(tmp_path):
    """Builds a core whose only provider is a stub."""
    cores = []

    def build(url, **more):
        local = {"LYMA_ORDER": "local", "LYMA_PROVIDERS__LOCAL__BASE_URL": url, "LYMA_PROVIDERS__LOCAL__MODEL": "usual"}
        cores.append(build_core({**os.environ, **local, "LYMA_PROVIDERS__LOCAL__FAST": "small", **more}))
        return cores[-1]

    yield build
    for core in cores:
        await core.close()


@pytest.fixture
def workspace(tmp_path):
    made = tmp_path / "app"
    (made / "src").mkdir(parents=True)
    (made / "src" / "a").write_text("hello\n")
    return made


def approve(core, agent, workspace):
    core.factory.store.save(agent)
    asked = core.factory.gate.ask(agent, workspace, b"shown", "terminal")
    core.factory.gate.answer(asked, agent.hash, asked.nonce, approved=True)
    return agent.hash


async def run(core, agent, workspace, run_id="one"):
    request = RunRequest(approve(core, agent, workspace), {"from": "1.0"}, workspace, run_id)
    return await core.runs.run(request, lambda _event: None)


async def test_an_agent_asks_the_model_of_its_class_and_hands_in_a_patch(core_at, workspace):
    replies = [
        call_tool("fs-write", {"path": "CHANGELOG.md", "text": "new\n"}),
        say('{"text": "one change"}'),
    ]
    with StubProvider(replies) as stub:
        core = core_at(stub.openai_url)
        result = await run(core, bundle(model__class="fast"), workspace)
        bodies = [request.body for request in stub.requests]
    assert (result.status, result.output) == ("ok", {"text": "one change"})
    assert [body["model"] for body in bodies] == ["small", "small"]
    assert result.patch.read_text().endswith("+new\n")
    assert not (workspace / "CHANGELOG.md").exists()


async def test_one_row_a_provider_call_at_the_leaf(core_at, workspace):
    leaf = plain_bundle("leaf", **QUIET)
    root = plain_bundle("root", **QUIET, delegate__agents=[leaf.hash], delegate__max_depth=1, delegate__max_runs=1)

    def answer(request) -> Reply:
        if "You are root" not in request.raw.decode():
            return say("seen", input_tokens=900, output_tokens=30)
        asked = len(request.body["messages"]) > 2
        more = {"input_tokens": 1000, "output_tokens": 40}
        return say("all", **more) if asked else call_tool("agent-run", {"hash": leaf.hash, "input": 1}, **more)

    with StubProvider(answer) as stub:
        core = core_at(stub.openai_url)
        approve(core, leaf, workspace)
        result = await run(core, root, workspace)
    assert result.status == "ok"
    assert (result.usage.turns, result.usage.tokens_in, result.usage.tokens_out) == (3, 2900, 110)
    assert result.usage.cost_micros == 0
    await core.close()
    with sqlite3.connect(core.home.state_db) as database:
        rows = database.execute(
            "SELECT session, input_tokens, output_tokens FROM attempts ORDER BY at, number"
        ).fetchall()
    database.close()
    assert sorted(rows) == [("one", 1000, 40), ("one", 1000, 40), ("one.1", 900, 30)]


async def test_cancelling_closes_the_connection_to_the_provider(core_at, workspace):
    with StubProvider([hang("thinking ab")]) as stub:
        core = core_at(stub.openai_url)
        request = RunRequest(approve(core, plain_bundle(**QUIET), workspace), 1, workspace, "one")
        running = asyncio.create_task(core.runs.run(request, lambda _event: None))
        asked = await asyncio.to_thread(stub.wait_for_request)
        began = time.monotonic()
        running.cancel()
        result = await running
        assert time.monotonic() - began < 3
        assert await asyncio.to_thread(asked.closed.wait, 5)
    assert result.status == "cancelled"


async def test_another_key_is_tried_within_one_turn(core_at, workspace):
    with StubProvider([fail(401), say("second")]) as stub:
        core = core_at(stub.openai_url, LYMA_PROVIDERS__LOCAL__KEYS="sk-aaaaaaaaaaaaaaaaaaaa,sk-bbbbbbbbbbbbbbbbbbbb")
        result = await run(core, plain_bundle(**QUIET, budget__max_turns=1), workspace)
    assert (result.status, result.usage.turns, len(stub.requests)) == ("ok", 1, 2)


async def test_a_provider_of_unknown_price_is_never_asked(core_at, workspace):
    order = {"LYMA_ORDER": "far", "LYMA_PROVIDERS__FAR__BASE_URL": "http://far.invalid/v1"}
    core = core_at("http://127.0.0.1:1/v1", **order, LYMA_PROVIDERS__FAR__MODEL="m")
    result = await run(core, plain_bundle(**QUIET), workspace)
    assert (result.status, result.usage.turns) == ("refused", 0)
    assert "price is known" in result.error.message


async def test_closing_the_core_ends_its_runs(core_at, workspace):
    with StubProvider([hang()]) as stub:
        core = core_at(stub.openai_url)
        request = RunRequest(approve(core, plain_bundle(**QUIET), workspace), 1, workspace, "one")
        running = asyncio.create_task(core.runs.run(request, lambda _event: None))
        await asyncio.to_thread(stub.wait_for_request)
        await core.close()
        assert (await running).status == "cancelled"
