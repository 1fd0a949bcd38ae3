"""A stop at any instant ends a turn once, whole and soon."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from lyma_server.agent import turn as turn_module
from lyma_server.agent.tools import changing
from lyma_server.protocol.events import ItemCompleted, ItemDiscarded, ItemStarted, TurnCompleted
from lyma_server.protocol.items import EditItem, ToolResultItem
from lyma_server.protocol.messages import AskBudget
from lyma_server.router.chat import Text, TextDelta, ThinkingDelta, ToolCall, ToolResult
from tests.fakes import Desk, Ears, answer

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"a.txt": "one\ntwo\n"}


def script() -> list[list]:
    read = ToolCall("1", "read_file", {"path": "a.txt"})
    write = ToolCall("2", "write_file", {"path": "b.txt", "text": "new\n"})
    long = [ThinkingDelta("let me see"), *answer(" ".join(f"word{n}" for n in range(40)), read, write)]
    return [long, answer("Done with " + "it " * 20)]


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def check_whole(desk: Desk) -> None:
    """Numbers without gaps, one start and one end, no item left open."""
    events = desk.ears.events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (desk.ears.types[0], desk.ears.types[-1]) == ("turn.started", "turn.completed")
    assert desk.ears.types.count("turn.completed") == 1
    started = [body.item.id for body in desk.ears.bodies if isinstance(body, ItemStarted)]
    ended = [body.item.id for body in desk.ears.bodies if isinstance(body, ItemCompleted)]
    ended += [body.item for body in desk.ears.bodies if isinstance(body, ItemDiscarded)]
    assert sorted(started) == sorted(ended)


@pytest.mark.parametrize("offsets", [range(start, 200, 8) for start in range(8)], ids=str)
async def test_200_offsets(tmp_path: Path, offsets: range) -> None:
    reasons = set()
    for offset in offsets:
        desk = Desk(tmp_path / str(offset), *script(), answer("Later."), files=FILES)
        turn = desk.start()
        await turns_of_the_loop(offset)
        turn.cancel()
        heard = len(desk.ears.events)
        turn.cancel()
        begin = time.monotonic()
        result = await turn.result()
        assert time.monotonic() - begin < 2
        check_whole(desk)
        reasons.add(result.stop_reason)
        last = desk.ears.bodies[-1]
        assert isinstance(last, TurnCompleted)
        assert last.stop_reason == result.stop_reason
        if result.stop_reason == "cancelled":
            assert heard < len(desk.ears.events)
        assert ("b.txt" in {edit.path for edit in result.edits}) is (
            desk.workspace.root / "b.txt" in desk.workspace.files
        )
        await check_that_it_goes_on(desk, result.session)
    assert "cancelled" in reasons


async def check_that_it_goes_on(desk: Desk, session: str) -> None:
    """The next ask of the session has every call answered, and what was said."""
    desk.router.scripts[len(desk.router.requests) :] = [answer("Later.")]
    desk.ears = Ears()
    assert (await desk.ask("Go on", session=session)).text == "Later."
    blocks = [block for message in desk.router.requests[-1].messages for block in message.blocks]
    calls = [block.id for block in blocks if isinstance(block, ToolCall)]
    assert calls == [block.call for block in blocks if isinstance(block, ToolResult)]


async def test_the_partial_text_is_the_result_and_is_remembered(tmp_path: Path) -> None:
    said, forever = asyncio.Event(), asyncio.Event()
    desk = Desk(tmp_path, [TextDelta("So far so"), TextDelta(" good"), said.set, forever.wait], answer("More."))
    turn = desk.start()
    await said.wait()
    turn.cancel()
    result = await turn.result()
    assert (result.stop_reason, result.text) == ("cancelled", "So far so good")
    assert result.usage.estimated
    assert result.usage.output_tokens > 0
    assert desk.router.closed == 1
    desk.ears = Ears()
    await desk.ask("And?", session=result.session)
    assert desk.router.requests[1].messages[1].blocks == (Text("So far so good"),)


async def test_a_stop_before_anything_began_makes_no_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    turn = desk.start()
    turn.cancel()
    assert (await turn.result()).stop_reason == "cancelled"
    assert desk.ears.types == ["turn.started", "turn.completed"]
    assert desk.router.requests == []


async def test_a_stop_after_the_end_changes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Done."))
    turn = desk.start()
    await turn.result()
    events = list(desk.ears.events)
    turn.cancel()
    assert (await turn.result()).stop_reason == "end_turn"
    assert desk.ears.events == events


async def test_many_wait_and_one_who_leaves_stops_nothing(tmp_path: Path) -> None:
    gate = asyncio.Event()
    desk = Desk(tmp_path, [gate.wait, *answer("Done.")])
    turn = desk.start()
    first, second = asyncio.create_task(turn.result()), asyncio.create_task(turn.result())
    await turns_of_the_loop(5)
    first.cancel()
    gate.set()
    assert (await second).text == "Done."
    assert first.cancelled()


async def test_a_provider_that_will_not_stop_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "GRACE_S", 0.05)
    began, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        began.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    desk = Desk(tmp_path, [TextDelta("So far"), stubborn, TextDelta("too late")])
    turn = desk.start()
    await began.wait()
    turn.cancel()
    result = await turn.result()
    assert (result.stop_reason, result.text) == ("cancelled", "So far")
    release.set()
    await turns_of_the_loop(20)
    check_whole(desk)


async def test_time_that_runs_out_is_a_budget(tmp_path: Path) -> None:
    forever = asyncio.Event()
    desk = Desk(tmp_path, [TextDelta("So far"), forever.wait])
    result = await desk.ask(budget=AskBudget(timeout_ms=500))
    assert (result.stop_reason, result.text) == ("budget", "So far")
    check_whole(desk)


async def test_a_change_that_has_begun_is_finished_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, finish = asyncio.Event(), asyncio.Event()
    desk = Desk(tmp_path, answer(ToolCall("1", "write_file", {"path": "b.txt", "text": "new\n"})))
    apply = desk.workspace.apply

    async def slow(change) -> None:
        began.set()
        await finish.wait()
        await apply(change)

    monkeypatch.setattr(desk.workspace, "apply", slow)
    turn = desk.start()
    await began.wait()
    turn.cancel()
    await turns_of_the_loop(3)
    finish.set()
    result = await turn.result()
    assert [edit.path for edit in result.edits] == ["b.txt"]
    assert [item.applied for item in desk.completed(EditItem)] == [True]
    assert desk.completed(ToolResultItem)[0].is_error
    check_whole(desk)


async def test_a_change_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "GRACE_S", 0.05)
    began = asyncio.Event()
    desk = Desk(tmp_path, answer(ToolCall("1", "write_file", {"path": "b.txt", "text": "new\n"})))

    async def hang(_change) -> None:
        began.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(desk.workspace, "apply", hang)
    turn = desk.start()
    await began.wait()
    turn.cancel()
    result = await turn.result()
    assert result.edits == ()
    assert [item.applied for item in desk.completed(EditItem)] == [False]
    check_whole(desk)


def test_the_end_of_the_event_loop_is_a_stop(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [TextDelta("So far"), asyncio.Event().wait])

    async def leave() -> None:
        desk.start()
        await turns_of_the_loop(10)

    asyncio.run(leave())
    check_whole(desk)
