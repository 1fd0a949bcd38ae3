"""Budgets of runs: exact at the last unit, whatever a provider says it used and however many run at once."""

from __future__ import annotations

import pytest
from attrs import evolve

from lyma_server.factory.asking import size_of
from lyma_server.factory.model_call import most_of
from lyma_server.factory.outcome import Room
from lyma_server.protocol.events import Usage
from lyma_server.router.prices import FREE
from tests.agents import plain_bundle
from tests.fake_child import FakeSandbox
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import DEAR, ScriptedModel, attempt, call, say

__all__ = ["own_staging", "quick_disk"]

LIST = call(("fs-list", {}))
TOLD = {"tools__allow": ["fs.list"], "files__write": []}


def desk_with(tmp_path, *answers, prices=None, **more):
    return Desk(tmp_path, ScriptedModel(*answers, prices=prices), **more)


async def bound_of(tmp_path, agent, price=FREE):
    """The upper bound of the agent's first call, as an earlier run of it shows."""
    desk = desk_with(tmp_path / "measured", say("x"))
    await desk.run(agent)
    return most_of(size_of(desk.model.requests[0]), 2048, [price])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "measured").mkdir()
    (tmp_path / "tried").mkdir()
    return tmp_path


@pytest.mark.parametrize(("limit", "status"), [(3, "ok"), (2, "budget_exceeded")])
async def test_turns(tmp_path, limit, status):
    desk = desk_with(tmp_path, LIST, LIST, say("x"))
    result = await desk.run(plain_bundle(budget__max_turns=limit, **TOLD))
    assert (result.status, len(desk.model.requests), result.usage.turns) == (status, limit, limit)


@pytest.mark.parametrize(("limit", "status"), [(3, "ok"), (2, "budget_exceeded")])
async def test_tool_calls_count_by_the_model_and_not_by_the_child(tmp_path, limit, status):
    wrong = call(("nothing", {}))
    desk = desk_with(tmp_path, call(("fs-list", {}), ("fs-list", {})), wrong, say("x"))
    result = await desk.run(plain_bundle(budget__max_tool_calls=limit, **TOLD))
    assert result.status == status
    if status != "ok":
        assert "budget.max_tool_calls" in result.error.message


@pytest.mark.parametrize(("more", "status"), [(0, "ok"), (-1, "budget_exceeded")])
async def test_tokens(folder, more, status):
    agent = plain_bundle(**TOLD)
    bound = await bound_of(folder, agent)
    desk = desk_with(folder / "tried", say("x"))
    result = await desk.run(plain_bundle(budget__max_tokens=bound.tokens + more, **TOLD))
    assert result.status == status
    assert len(desk.model.requests) == (status == "ok")
    if status != "ok":
        assert f"allows ({bound.tokens:,} asked for, {bound.tokens - 1:,} left); raise that." in result.error.message


@pytest.mark.parametrize(("more", "status"), [(0, "ok"), (-1, "budget_exceeded")])
async def test_cost(folder, more, status):
    bound = await bound_of(folder, plain_bundle(**TOLD), DEAR)
    desk = desk_with(folder / "tried", say("x"), prices={"fake": DEAR})
    result = await desk.run(plain_bundle(budget__max_cost_micros=bound.cost_micros + more, **TOLD))
    assert result.status == status
    assert len(desk.model.requests) == (status == "ok")


async def test_what_a_provider_says_it_used_is_charged(tmp_path):
    desk = desk_with(tmp_path, say("x", Usage(input_tokens=1000, output_tokens=100)), prices={"fake": DEAR})
    usage = (await desk.run(plain_bundle(**TOLD))).usage
    assert (usage.tokens_in, usage.tokens_out, usage.cost_micros) == (1000, 100, 3000)


LIES = {
    "nothing": Usage(),
    "estimated": Usage(input_tokens=900, output_tokens=90, estimated=True),
    "too little": Usage(input_tokens=3, output_tokens=1),
    "negative": Usage(input_tokens=-900, output_tokens=90),
    "more cached than sent": Usage(input_tokens=900, output_tokens=90, cached_tokens=901),
    "far too much": Usage(input_tokens=10**12, output_tokens=1),
}


@pytest.mark.parametrize("usage", LIES.values(), ids=LIES)
async def test_usage_that_cannot_be_true_is_charged_in_full(folder, usage):
    agent = plain_bundle(**TOLD)
    bound = await bound_of(folder, agent, DEAR)
    desk = desk_with(folder / "tried", say("x", usage), prices={"fake": DEAR})
    used = (await desk.run(agent)).usage
    assert used.cost_micros == bound.cost_micros
    assert used.tokens_in + used.tokens_out == bound.tokens


async def test_lies_never_make_more_calls_than_the_budget_has_room_for(folder):
    bound = await bound_of(folder, plain_bundle(**TOLD))
    desk = desk_with(folder / "tried", call(("fs-list", {}), usage=Usage()))
    result = await desk.run(plain_bundle(budget__max_tokens=3 * bound.tokens, **TOLD))
    assert result.status == "budget_exceeded"
    assert len(desk.model.requests) < 3
    assert result.usage.tokens_in + result.usage.tokens_out <= 3 * bound.tokens


async def test_attempts_that_may_have_cost_something_count_in_full(folder):
    agent = plain_bundle(**TOLD)
    bound = await bound_of(folder, agent)
    desk = desk_with(folder / "tried", attempt("stalled"), attempt("rate_limit", status=429), say("x"))
    usage = (await desk.run(agent)).usage
    assert usage.turns == 2
    assert usage.tokens_in + usage.tokens_out == bound.tokens + 990


async def test_there_is_no_further_attempt_without_room_for_it(folder):
    bound = await bound_of(folder, plain_bundle(**TOLD))
    agent = plain_bundle(budget__max_tokens=2 * bound.tokens - 1, **TOLD)
    desk = desk_with(folder / "tried", attempt("stream_cut", status=200), say("x"))
    result = await desk.run(agent)
    assert (result.status, result.usage.turns) == ("budget_exceeded", 1)


@pytest.mark.parametrize("class_", ["connect_error", "dns_error", "tls_error"])
async def test_attempts_that_reached_nobody_are_free(tmp_path, class_):
    desk = desk_with(tmp_path, attempt(class_), say("x"))
    usage = (await desk.run(plain_bundle(budget__max_turns=1, **TOLD))).usage
    assert (usage.turns, usage.tokens_in) == (1, 900)


async def test_no_known_price_is_refused_and_nobody_is_asked(tmp_path):
    desk = desk_with(tmp_path, say("x"), prices={"fake": None})
    result = await desk.run(plain_bundle(**TOLD))
    assert result.status == "refused"
    assert "balanced" in result.error.message
    assert not desk.model.requests


async def test_only_those_whose_price_is_known_are_asked_and_the_dearest_bounds(folder):
    agent = plain_bundle(**TOLD)
    bound = await bound_of(folder, agent, DEAR)
    prices = {"fake": FREE, "unknown": None, "dear": DEAR}
    desk = desk_with(folder / "tried", say("x"), prices=prices)
    assert (await desk.run(agent)).status == "ok"
    assert desk.model.requests[0].among == ("fake", "dear")
    too_little = plain_bundle(budget__max_cost_micros=bound.cost_micros - 1, **TOLD)
    assert (await desk.run(too_little)).status == "budget_exceeded"
    assert len(desk.model.requests) == 1


@pytest.mark.parametrize(("limit", "status"), [(10, "ok"), (9, "budget_exceeded")])
async def test_bytes_read(tmp_path, limit, status):
    desk = desk_with(tmp_path, say("x"))
    desk.write({"src/a": "12345", "src/b": "12345", "other": "123456"})
    result = await desk.run(plain_bundle(files__max_read_bytes=limit, **TOLD))
    assert result.status == status
    assert bool(desk.model.requests) == (status == "ok")


async def test_one_file_that_is_far_too_large_is_not_left_out_in_silence(tmp_path):
    desk = desk_with(tmp_path, say("x"))
    desk.write({"src/a": "1" * 100})
    assert (await desk.run(plain_bundle(files__max_read_bytes=10, **TOLD))).status == "budget_exceeded"


@pytest.mark.parametrize(("limit", "status"), [(2, "ok"), (1, "budget_exceeded")])
async def test_files_read(tmp_path, limit, status):
    desk = desk_with(tmp_path, say("x"))
    desk.write({"src/a": "1", "src/b/c": "1", "other": "1"})
    assert (await desk.run(plain_bundle(files__max_files=limit, **TOLD))).status == status


@pytest.mark.parametrize(("limit", "status"), [(10, "ok"), (9, "budget_exceeded")])
async def test_bytes_written(tmp_path, limit, status):
    async def life(child):
        await child.hello()
        for _ in range(2):  # what is sent again is counted once
            await child.put("CHANGELOG.md", "12345", more=True)
            await child.put("CHANGELOG.md", "67890")
        await child.result({"text": "x"})

    desk = desk_with(tmp_path, say("x"), sandbox=FakeSandbox(life))
    assert (await desk.run(plain_bundle(files__max_write_bytes=limit))).status == status


@pytest.mark.parametrize(("limit", "status"), [(16, "ok"), (15, "budget_exceeded")])
async def test_bytes_of_output(tmp_path, limit, status):
    desk = desk_with(tmp_path, say("éé"))
    assert len('{"text": "éé"}'.encode()) == 16
    assert (await desk.run(plain_bundle(output__max_bytes=limit, **TOLD))).status == status


async def test_time(tmp_path):
    async def life(child):
        await child.hello()
        await child.until_told()

    desk = desk_with(tmp_path, say("x"), sandbox=FakeSandbox(life))
    result = await desk.run(plain_bundle(budget__wall_s=1, **TOLD))
    assert (result.status, result.error.kind) == ("timeout", "timeout")
    assert 1000 <= result.usage.wall_ms < 5000


async def test_a_ceiling_that_was_lowered_after_the_approval_holds(tmp_path):
    desk = desk_with(tmp_path, LIST, say("x"))
    hash_ = desk.approve(plain_bundle(**TOLD))
    object.__setattr__(desk.factory.ceiling, "max_turns", 1)
    object.__setattr__(desk.factory.ceiling, "memory_mb", 64)
    assert (await desk.run_hash(hash_)).status == "budget_exceeded"
    assert len(desk.model.requests) == 1
    assert desk.sandbox.launches[0].limits.memory_mb == 64


@pytest.mark.parametrize(("more", "status"), [(0, "ok"), (-1, "budget_exceeded")])
@pytest.mark.parametrize("what", ["tokens", "cost_micros"])
async def test_whoever_asks_for_a_run_has_a_budget_too(folder, what, more, status):
    agent = plain_bundle(**TOLD)
    bound = getattr(await bound_of(folder, agent, DEAR), what)
    desk = desk_with(folder / "tried", say("x"), prices={"fake": DEAR})
    request = evolve(desk.request(desk.approve(agent)), room=Room(**{what: bound + more}))
    result = await desk.runs.run(request, desk.events.append)
    desk.check(result)
    assert (result.status, len(desk.model.requests)) == (status, int(status == "ok"))
    if status != "ok":
        assert f"budget.max_{what} of the ask allows ({bound:,} asked for, {bound - 1:,} left)" in result.error.message


async def test_runs_below_one_that_was_asked_for_share_that_budget(folder):
    leaf = plain_bundle("leaf", **TOLD)
    bound = (await bound_of(folder, leaf)).tokens
    desk = desk_with(folder / "tried", call(("agent-run", {"hash": leaf.hash, "input": 1}), usage=Usage()))
    desk.approve(leaf)
    root = plain_bundle("root", delegate__agents=[leaf.hash], delegate__max_depth=1, delegate__max_runs=9, **TOLD)
    room = Room(tokens=2 * bound)
    result = await desk.runs.run(evolve(desk.request(desk.approve(root)), room=room), desk.events.append)
    assert result.status == "budget_exceeded"
    assert result.usage.tokens_in + result.usage.tokens_out <= room.tokens
