"""Agents that run agents: what they may run, what they share, and whose money it is."""

from __future__ import annotations

import asyncio
import json

import pytest

from lyma_server.factory.asking import size_of
from lyma_server.protocol.events import Usage
from tests.agents import plain_bundle
from tests.fake_child import FakeSandbox
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import DEAR, Hang, ScriptedModel, call, say

__all__ = ["own_staging", "quick_disk"]

QUIET = {"files__write": [], "tools__allow": []}
LEAF = plain_bundle("leaf", **QUIET)


def root_of(*leaves, **changes):
    more = {"delegate__agents": [leaf.hash for leaf in leaves], "delegate__max_depth": 1, "delegate__max_runs": 8}
    return plain_bundle("root", **{**QUIET, **more, **changes})


def running(*inputs, leaf=LEAF, then=None):
    """A child that runs the leaf with each input, all at once, and hands in the replies."""

    async def life(child):
        await child.hello()
        numbers = [await child.begin("agent.run", hash=leaf.hash, input=each) for each in inputs]
        replies = {}
        while len(replies) < len(numbers):
            reply = await child.channel.receive()
            replies[reply["id"]] = reply
        if then is not None:
            await then(child)
        text = json.dumps([replies[number]["status"] for number in numbers])
        await child.result({"text": text})

    return life


def desk_with(tmp_path, *answers, life=None, prices=None, **lives):
    lives = {"root": life, **lives} if life is not None else lives
    return Desk(tmp_path, ScriptedModel(*answers, prices=prices), FakeSandbox(lives=lives))


async def test_the_model_is_offered_the_agents_that_the_manifest_names_and_hears_their_result(tmp_path):
    def answer(request):
        if request.session != "run-1":
            return say("from the leaf")
        asked = call(("agent-run", {"hash": LEAF.hash, "input": {"a": 1}}))
        return asked if len(request.messages) == 1 else say("done")

    async def life(child):
        await child.hello()
        reply = await child.step()
        (asked,) = reply["tool_calls"]
        assert asked["name"] == "agent.run"
        outcome = await child.ask("agent.run", **asked["arguments"])
        await child.step((asked["id"], json.dumps(outcome["output"])))
        await child.result({"text": "done"})

    desk = desk_with(tmp_path, answer, life=life)
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF))
    assert result.status == "ok"
    tools = [[tool.name for tool in request.tools] for request in desk.model.requests]
    assert tools == [["agent-run"], [], ["agent-run"]]
    assert '"from the leaf"' in desk.model.requests[2].messages[2].blocks[0].text
    assert [event.path for event in desk.events if event.kind == "ended"] == [("root", "leaf"), ("root",)]
    nested = json.loads((desk.home.runs / "run-1.1" / "result.json").read_text())
    assert (nested["status"], nested["output"]) == ("ok", {"text": "from the leaf"})


async def test_totals_are_the_sums_over_the_leaves(tmp_path):
    desk = desk_with(tmp_path, say("x"), life=running(1, 2, 3, then=lambda child: child.step()), prices={"fake": DEAR})
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF))
    assert result.status == "ok"
    leaves = [json.loads((desk.home.runs / f"run-1.{at}" / "result.json").read_text())["usage"] for at in (1, 2, 3)]
    own = {"turns": 1, "tokens_in": 900, "tokens_out": 90, "cost_micros": 2700}
    for name, value in own.items():
        assert getattr(result.usage, name) == value + sum(leaf[name] for leaf in leaves)
    assert sorted(request.session for request in desk.model.requests) == ["run-1", "run-1.1", "run-1.2", "run-1.3"]


async def test_eight_children_at_once_on_one_remaining_call_make_one_call(tmp_path):
    desk = desk_with(tmp_path, say("x"), life=running(*range(8)))
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF, budget__max_turns=1))
    assert len(desk.model.requests) == 1
    assert sorted(json.loads(result.output["text"])) == ["budget_exceeded"] * 7 + ["ok"]


async def test_eight_children_at_once_with_money_for_one_make_one_call(tmp_path):
    (tmp_path / "measured").mkdir()
    measured = Desk(tmp_path / "measured", ScriptedModel(say("x")))
    await measured.run(LEAF)
    most = size_of(measured.model.requests[0]) + 2048
    lies = say("x", Usage())
    desk = desk_with(tmp_path, lies, life=running(*["go"] * 8))
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF, budget__max_tokens=2 * most - 1))
    assert len(desk.model.requests) == 1
    assert result.usage.tokens_in + result.usage.tokens_out == most


async def test_at_most_four_run_at_once_and_the_others_wait(tmp_path):
    most, four = 0, asyncio.Barrier(4)

    async def leaf(child):
        nonlocal most
        await child.hello()
        await four.wait()
        most = max(most, desk.sandbox.running - 1)
        await child.step()
        await child.result({"text": "x"})

    desk = desk_with(tmp_path, say("x"), life=running(*range(8)), leaf=leaf)
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF))
    assert json.loads(result.output["text"]) == ["ok"] * 8
    assert most == 4


@pytest.mark.parametrize(("limit", "expected"), [(3, 3), (2, 2), (16, 16)])
async def test_at_most_so_many_runs_in_all(tmp_path, limit, expected):
    desk = desk_with(tmp_path, say("x"), life=running(*range(expected + 1)))
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF, delegate__max_runs=limit, budget__max_turns=50))
    assert sorted(json.loads(result.output["text"])) == ["budget_exceeded"] + ["ok"] * expected


async def test_an_agent_that_the_manifest_does_not_name_ends_the_run(tmp_path):
    other = plain_bundle("other", **QUIET)
    desk = desk_with(tmp_path, say("x"), life=running(1, leaf=other))
    desk.approve(other)
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF))
    assert result.status == "crashed"
    assert len(desk.sandbox.launches) == 1


async def test_each_agent_below_is_approved_by_itself(tmp_path):
    desk = desk_with(tmp_path, say("x"), life=running(1))
    desk.factory.store.save(LEAF)
    result = await desk.run(root_of(LEAF))
    assert json.loads(result.output["text"]) == ["refused"]
    assert not desk.model.requests


async def test_an_agent_below_runs_none(tmp_path):
    middle = plain_bundle("middle", **QUIET, delegate__agents=[LEAF.hash], delegate__max_depth=1, delegate__max_runs=1)
    desk = desk_with(tmp_path, say("x"), life=running(1, leaf=middle), middle=running(1))
    desk.approve(LEAF)
    desk.approve(middle)
    result = await desk.run(root_of(middle))
    assert json.loads(result.output["text"]) == ["refused"]


async def test_revoking_the_root_ends_what_runs_below_it(tmp_path):
    async def leaf(child):
        await child.hello()
        await child.step()
        desk.factory.gate.revoke(root.hash)
        await child.step(("c0", "x"))

    desk = desk_with(tmp_path, call(("fs-list", {})), life=running(1), leaf=leaf)
    listing = plain_bundle("leaf", files__write=[], tools__allow=["fs.list"])
    desk.approve(listing)
    root = root_of(listing)
    desk.sandbox.lives["root"] = running(1, leaf=listing)
    result = await desk.run(root)
    assert result.status == "refused"
    assert len(desk.model.requests) == 1


async def test_files_are_the_own_and_what_the_root_may_grant(tmp_path):
    leaf = plain_bundle("leaf", files__read=["**"], files__write=["**"], tools__allow=["fs.write"])

    async def life(child):
        await child.hello()
        await child.put(path, "x")
        await child.result({"text": "x"})

    desk = desk_with(tmp_path, say("x"), life=running(1, leaf=leaf), leaf=life)
    desk.write({"src/a": "1", "other/b": "2"})
    desk.approve(leaf)
    root = root_of(leaf, files__read=["src/**"], files__write=["src/**"], tools__allow=["fs.write"])
    path = "src/new"
    result = await desk.run(root)
    assert desk.sandbox.staged == [{"src/a": b"1"}, {"src/a": b"1"}]
    assert [change.path for change in result.changes] == ["src/new"]
    path = "other/new"
    result = await desk.run(root)
    assert json.loads(result.output["text"]) == ["refused"]
    assert result.changes == ()


async def test_two_runs_do_not_change_the_same_file(tmp_path):
    leaf = plain_bundle("leaf", files__write=["a"], tools__allow=["fs.write"])

    async def life(child):
        await child.hello()
        await child.put("a", str(child.start["input"]))
        await child.result({"text": "x"})

    desk = desk_with(tmp_path, say("x"), life=running(1, 2, leaf=leaf), leaf=life)
    desk.approve(leaf)
    result = await desk.run(root_of(leaf, files__write=["a"], tools__allow=["fs.write"]))
    assert sorted(json.loads(result.output["text"])) == ["ok", "refused"]
    assert len(result.changes) == 1


async def test_what_a_failed_run_would_have_changed_is_free_for_others(tmp_path):
    leaf = plain_bundle("leaf", files__write=["a"], tools__allow=["fs.write"])

    async def life(child):
        await child.hello()
        await child.put("a", str(child.start["input"]))
        if child.start["input"] != 1:
            await child.result({"text": "x"})

    async def both(child):
        await child.hello()
        replies = [await child.ask("agent.run", hash=leaf.hash, input=each) for each in (1, 2)]
        await child.result({"text": json.dumps([reply["status"] for reply in replies])})

    desk = desk_with(tmp_path, say("x"), life=both, leaf=life)
    desk.approve(leaf)
    result = await desk.run(root_of(leaf, files__write=["a"], tools__allow=["fs.write"]))
    assert json.loads(result.output["text"]) == ["crashed", "ok"]
    assert [change.content for change in result.changes] == [b"2"]


async def test_the_stricter_of_both_binds(tmp_path):
    desk = desk_with(tmp_path, say("x"), life=running(1))
    desk.approve(LEAF)
    await desk.run(root_of(LEAF, budget__memory_mb=64, budget__cpu_s=7, budget__scratch_mb=4))
    limits = desk.sandbox.launches[1].limits
    assert (limits.memory_mb, limits.cpu_s, limits.scratch_mb) == (64, 7, 4)


async def test_the_time_of_the_root_ends_what_runs_below_it(tmp_path):
    hang = Hang()
    desk = desk_with(tmp_path, hang, life=running(1))
    desk.approve(LEAF)
    result = await desk.run(root_of(LEAF, budget__wall_s=1))
    assert result.status == "timeout"
    assert hang.closed
    nested = json.loads((desk.home.runs / "run-1.1" / "result.json").read_text())
    assert nested["status"] in {"timeout", "cancelled"}


async def test_a_step_while_an_agent_runs_ends_the_run(tmp_path):
    async def life(child):
        await child.hello()
        await child.begin("agent.run", hash=LEAF.hash, input=1)
        await child.begin("llm.step", append=[])
        await child.until_told()

    desk = desk_with(tmp_path, Hang(), life=life)
    desk.approve(LEAF)
    assert (await desk.run(root_of(LEAF))).status == "crashed"
    assert asyncio.all_tasks() == {asyncio.current_task()}
