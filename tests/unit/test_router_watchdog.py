"""The watchdog: content counts, bytes and the reader's own time do not."""

from __future__ import annotations

import asyncio

import pytest

from lyma_server.router.watchdog import Patience, Stalled, Watchdog

FOREVER = 3600.0


def watchdog(first: float = FOREVER, between: float = FOREVER, deadline: float = FOREVER, **more: float) -> Watchdog:
    now = asyncio.get_running_loop().time()
    return Watchdog(Patience(first, more.get("thinking", FOREVER), between, now + deadline, more.get("finishing", 5)))


async def test_what_comes_in_time_is_given() -> None:
    dog = watchdog()
    assert await dog.guard(asyncio.sleep(0, "value")) == "value"
    dog.stop()


async def test_nothing_at_all_is_noticed() -> None:
    with pytest.raises(Stalled) as caught:
        await watchdog(first=0.01).guard(asyncio.sleep(FOREVER))
    assert (caught.value.phase, caught.value.deadline) == ("connecting", False)


async def test_silence_between_contents_is_noticed() -> None:
    dog = watchdog(between=0.01)
    await dog.guard(asyncio.sleep(0))
    dog.progress()
    with pytest.raises(Stalled) as caught:
        await dog.guard(asyncio.sleep(FOREVER))
    assert caught.value.phase == "streaming"


async def test_bytes_without_content_do_not_buy_time() -> None:
    dog = watchdog(first=0.05)

    async def receive_comments() -> None:
        while True:
            await dog.guard(asyncio.sleep(0.005))

    with pytest.raises(Stalled):
        await receive_comments()


async def test_content_buys_time() -> None:
    dog = watchdog(first=0.05, between=0.05)
    for _ in range(4):
        await dog.guard(asyncio.sleep(0.02))
        dog.progress()
    dog.stop()


async def test_the_time_of_the_reader_is_not_counted() -> None:
    dog = watchdog(first=0.05)
    await dog.guard(asyncio.sleep(0))
    await asyncio.sleep(0.1)
    await dog.guard(asyncio.sleep(0.01))
    dog.stop()


async def test_a_thought_may_take_longer_and_the_end_may_not() -> None:
    dog = watchdog(first=0.01, finishing=0.01)
    dog.thinking()
    await dog.guard(asyncio.sleep(0.03))
    dog.finishing()
    with pytest.raises(Stalled) as caught:
        await dog.guard(asyncio.sleep(FOREVER))
    assert caught.value.phase == "finishing"


async def test_the_deadline_of_the_call_holds_over_all() -> None:
    with pytest.raises(Stalled) as caught:
        await watchdog(deadline=0.01).guard(asyncio.sleep(FOREVER))
    assert caught.value.deadline


async def test_a_cancellation_from_outside_stays_one() -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.sleep(FOREVER)

    dog = watchdog(first=0.05)
    task = asyncio.create_task(dog.guard(wait()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    dog.stop()


async def test_a_stall_leaves_the_task_free_to_go_on() -> None:
    with pytest.raises(Stalled):
        await watchdog(first=0.01).guard(asyncio.sleep(FOREVER))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)
