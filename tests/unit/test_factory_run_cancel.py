"""Cancelling a run, at each stage: one result, in time, and nothing of it is left."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time

import pytest

from lyma_server.errors import UsageError
from tests.agents import plain_bundle
from tests.fake_child import FakeSandbox, obedient
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import Hang, ScriptedModel, call, say

__all__ = ["own_staging", "quick_disk"]

AGENT = plain_bundle(tools__allow=["fs.list", "fs.write"])
IN_TIME_S = 3


class Stage:
    """A place where a run can be held. `reached` is set there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def hold(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


async def cancelled_at(desk, stage, *, by="task"):
    """Run, and cancel once the stage is reached; the result, which must come in time."""
    hash_ = desk.approve(AGENT)
    running = asyncio.create_task(desk.run_hash(hash_))
    await stage.reached.wait()
    began = time.monotonic()
    if by == "task":
        running.cancel()
    else:
        await desk.runs.stop("run-1")
    result = await running
    assert time.monotonic() - began < IN_TIME_S
    assert not running.cancelling()
    return result


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr("lyma_server.factory.running.GRACE_S", 0.05)


async def test_while_the_mask_is_being_proven(tmp_path):
    stage = Stage()

    class Slow(Desk):
        async def _prove(self, workspace):
            await stage.hold()

    desk = Slow(tmp_path, ScriptedModel(say("x")))
    result = await cancelled_at(desk, stage)
    assert (result.status, desk.sandbox.launches) == ("cancelled", [])


async def test_while_files_are_copied(tmp_path, monkeypatch):
    copied: list[bool] = []
    stage, loop, going_on = Stage(), asyncio.get_running_loop(), threading.Event()

    def slow(*_):
        copied.append(True)
        loop.call_soon_threadsafe(stage.reached.set)
        going_on.wait(10)
        return b"x"

    monkeypatch.setattr("lyma_server.factory.folder.Folder.read", _reading(slow))
    loop.call_later(0, lambda: asyncio.create_task(_later(stage, going_on)))
    desk = Desk(tmp_path, ScriptedModel(say("x")))
    desk.write({f"src/{number}": "x" for number in range(100)})
    result = await cancelled_at(desk, stage)
    assert (result.status, desk.sandbox.launches) == ("cancelled", [])
    assert len(copied) == 1


def _reading(slow):
    from lyma_server.factory.folder import Folder

    read = Folder.read
    return lambda self, name, demands: slow() if name.isdigit() else read(self, name, demands)


async def _later(stage, going_on):
    await stage.reached.wait()
    await asyncio.sleep(0.05)
    going_on.set()


async def test_while_the_sandbox_starts(tmp_path):
    stage = Stage()

    class Slow(FakeSandbox):
        async def start(self, launch):
            await stage.hold()

    result = await cancelled_at(Desk(tmp_path, ScriptedModel(say("x")), Slow()), stage)
    assert result.status == "cancelled"


@pytest.mark.parametrize("by", ["task", "stop"])
async def test_before_the_child_says_hello(tmp_path, by):
    stage = Stage()
    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(lambda _child: stage.hold()))
    result = await cancelled_at(desk, stage, by=by)
    assert result.status == "cancelled"
    assert desk.sandbox.insides[0].stops == [0.05]


async def test_while_the_model_answers(tmp_path):
    stage, hang = Stage(), Hang()
    stage.reached = hang.begun
    desk = Desk(tmp_path, ScriptedModel(hang))
    result = await cancelled_at(desk, stage)
    assert (result.status, hang.closed) == ("cancelled", True)
    assert result.usage.tokens_out == 2048  # the provider may ask for it


async def test_while_a_tool_runs(tmp_path):
    stage = Stage()
    told = []

    async def life(child):
        await child.hello()
        await child.step()
        stage.reached.set()
        told.append(await child.channel.receive())

    desk = Desk(tmp_path, ScriptedModel(call(("fs-list", {}))), FakeSandbox(life))
    result = await cancelled_at(desk, stage)
    assert (result.status, told) == ("cancelled", [{"type": "cancel"}])


async def test_a_child_that_does_not_listen_is_killed(tmp_path):
    stage = Stage()

    async def life(child):
        await child.hello()
        while True:
            try:
                await stage.hold()
            except asyncio.CancelledError:
                killed.append(True)
                raise

    killed: list[bool] = []
    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(life))
    assert (await cancelled_at(desk, stage)).status == "cancelled"
    assert killed == [True]


async def test_while_files_come_back(tmp_path):
    stage = Stage()

    async def life(child):
        await child.hello()
        await child.put("CHANGELOG.md", "x")
        await stage.hold()

    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(life))
    result = await cancelled_at(desk, stage)
    assert (result.status, result.changes) == ("cancelled", ())


async def test_before_it_has_begun(tmp_path):
    desk = Desk(tmp_path, ScriptedModel(say("x")))
    request = desk.request(desk.approve(AGENT))
    running = asyncio.create_task(desk.runs.run(request, desk.events.append))
    while not desk.runs.list():
        await asyncio.sleep(0)
    running.cancel()
    result = await running
    assert result.status == "cancelled"
    desk.check(result)


async def test_any_number_of_times(tmp_path):
    stage = Stage()
    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(lambda _child: stage.hold()))
    running = asyncio.create_task(desk.run_hash(desk.approve(AGENT)))
    await stage.reached.wait()
    while not running.done():
        running.cancel()
        await asyncio.sleep(0.01)
    assert running.result().status == "cancelled"


async def test_a_run_that_has_ended_is_not_cancelled_any_more(tmp_path):
    desk = Desk(tmp_path, ScriptedModel(say("x")))
    result = await desk.run(AGENT)
    assert result.status == "ok"
    with pytest.raises(UsageError):
        await desk.runs.stop("run-1")


async def test_the_whole_tree_from_root_to_leaves(tmp_path):
    leaf = plain_bundle("leaf", tools__allow=[], files__write=[])
    root = plain_bundle(
        "root",
        tools__allow=[],
        files__write=[],
        delegate__agents=[leaf.hash],
        delegate__max_depth=1,
        delegate__max_runs=8,
    )
    order = []

    async def root_life(child):
        await child.hello()
        for at in range(6):
            await child.begin("agent.run", hash=leaf.hash, input=at)
        await child.until_told()
        order.append("root")

    async def leaf_life(child):
        await child.hello()
        await child.begin("llm.step", append=[])
        await child.until_told()
        order.append("leaf")

    hangs = [Hang() for _ in range(6)]
    answers = iter(hangs)
    desk = Desk(
        tmp_path, ScriptedModel(lambda _: next(answers)), FakeSandbox(lives={"root": root_life, "leaf": leaf_life})
    )
    desk.approve(leaf)
    running = asyncio.create_task(desk.run_hash(desk.approve(root)))
    for hang in hangs[:4]:
        await hang.begun.wait()
    assert desk.runs.list() == ("run-1", "run-1.1", "run-1.2", "run-1.3", "run-1.4")
    running.cancel()
    result = await running
    assert result.status == "cancelled"
    assert order == ["root"] + ["leaf"] * 4
    assert [hang.closed for hang in hangs] == [True] * 4 + [False] * 2
    for at in range(1, 5):
        assert json.loads((desk.home.runs / f"run-1.{at}" / "result.json").read_text())["status"] == "cancelled"
    assert not (desk.home.runs / "run-1.5").exists()


async def test_closing_ends_all_runs(tmp_path):
    stage = Stage()
    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(lambda _child: stage.hold()))
    hash_ = desk.approve(AGENT)
    running = [asyncio.create_task(desk.runs.run(desk.request(hash_), desk.events.append)) for _ in range(3)]
    while len(desk.sandbox.insides) < 3:
        await asyncio.sleep(0.01)
    await desk.runs.close()
    assert {(await each).status for each in running} == {"cancelled"}


async def test_many_runs_leave_nothing(tmp_path):
    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(obedient))
    await desk.run(AGENT)
    before, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
    hash_ = desk.approve(AGENT)
    for _ in range(20):
        await desk.run_hash(hash_)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(asyncio.all_tasks()) == tasks
