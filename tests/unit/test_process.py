"""Trusted helpers: input, output, limits, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from lyma_server.isolation.launch import SETPRIV
from lyma_server.isolation.process import HelperFailed, HelperResult, run_helper, run_helper_blocking, start_child

PYTHON = [sys.executable, "-I", "-c"]
LINUX = pytest.mark.skipif(not SETPRIV.exists(), reason="needs setpriv of util-linux")


async def both(argv, **options) -> HelperResult:
    """Run through both forms, which must agree."""
    result = await run_helper(argv, **options)
    assert run_helper_blocking(argv, **options) == result
    return result


def open_descriptors() -> set[str]:
    return {f"{fd}:{os.readlink(f'/proc/self/fd/{fd}')}" for fd in os.listdir("/proc/self/fd") if _exists(fd)}


def _exists(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}") and "/proc/" not in os.readlink(f"/proc/self/fd/{fd}")


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def until(condition, within_s: float = 2) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)


async def all_gone(pids: list[int]) -> None:
    await until(lambda: not any(alive(pid) for pid in pids))


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    before = open_descriptors()
    yield
    assert open_descriptors() == before


async def test_what_has_ended_is_collected():
    before = children()
    await both(["true"])
    child = start_child(["true"])
    await child.wait()
    await child.stop()
    assert children() == before


async def test_the_output_and_the_status_come_back():
    result = await both(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert result == HelperResult(3, b"out\n", b"err\n")


async def test_a_signal_is_a_negative_status():
    assert (await both(["sh", "-c", "kill -9 $$"])).status == -signal.SIGKILL


async def test_a_large_input_goes_through_both_ways():
    data = os.urandom(3 << 20)
    assert (await both(["cat"], stdin=data)).stdout == data


async def test_without_input_stdin_is_empty():
    assert (await both(["cat"])).stdout == b""


async def test_a_program_that_does_not_read_its_input_does_no_harm():
    assert (await both(["true"], stdin=b"x" * (1 << 20))).status == 0


async def test_the_environment_is_built_and_not_inherited(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("LD_PRELOAD", "")
    assert b"SOME_API_KEY" not in (await both(["env"])).stdout
    assert b"LD_PRELOAD" not in (await both(["env"])).stdout
    assert (await both(["/usr/bin/env"], env={"A": "1"})).stdout == b"A=1\n"


async def test_no_descriptor_of_ours_is_inherited(tmp_path):
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = await both([*PYTHON, "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"])
    assert result.stdout == b"[0, 1, 2]\n"


async def test_it_leads_a_group_of_its_own_in_the_folder_asked_for(tmp_path):
    program = "import os; print(os.getpgrp() == os.getpid(), os.getcwd())"
    assert (await both([*PYTHON, program], cwd=tmp_path)).stdout.decode().split() == ["True", str(tmp_path)]


@pytest.mark.parametrize("argv", [["no-such-program-at-all"], ["/no/such/program"]])
async def test_a_missing_program_is_said(argv):
    with pytest.raises(HelperFailed, match="is not installed") as caught:
        await run_helper(argv)
    assert caught.value.reason == "missing"
    with pytest.raises(HelperFailed, match="is not installed"):
        run_helper_blocking(argv)


async def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(HelperFailed, match="could not be started: No such file"):
        await run_helper(["true"], cwd=tmp_path / "none")


async def test_more_output_than_allowed_ends_it_while_it_speaks():
    start = time.monotonic()
    for run in (run_helper, _in_thread):
        with pytest.raises(HelperFailed, match="yes said more than it may") as caught:
            await run(["yes"], output_limit=100_000)
        assert caught.value.reason == "output"
    assert time.monotonic() - start < 2


async def _in_thread(argv, **options):
    return await asyncio.to_thread(run_helper_blocking, argv, **options)


STUBBORN = "trap '' TERM; (trap '' TERM; sleep 60) & echo $! $$ > {file}; wait; sleep 60"


def said_pids(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()] if file.exists() else []


@pytest.mark.parametrize("run", [run_helper, _in_thread])
async def test_too_slow_ends_the_whole_group_though_it_ignores_sigterm(run, tmp_path):
    file = tmp_path / "pids"
    start = time.monotonic()
    with pytest.raises(HelperFailed, match=r"sh gave no answer within 0\.2 s") as caught:
        await run(["sh", "-c", STUBBORN.format(file=file)], timeout_s=0.2)
    assert caught.value.reason == "timeout"
    assert time.monotonic() - start < 1.5
    assert len(said_pids(file)) == 2
    await all_gone(said_pids(file))


async def test_a_program_may_end_in_peace_on_sigterm(tmp_path):
    file = tmp_path / "bye"
    with pytest.raises(HelperFailed):
        await run_helper(["sh", "-c", f"trap 'echo bye > {file}; exit' TERM; sleep 60 & wait"], timeout_s=0.2)
    assert file.read_text() == "bye\n"


async def test_cancelling_ends_the_whole_group(tmp_path):
    file = tmp_path / "pids"
    task = asyncio.create_task(run_helper(["sh", "-c", STUBBORN.format(file=file)]))
    await until(lambda: len(said_pids(file)) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await all_gone(said_pids(file))


@pytest.mark.parametrize("run", [run_helper, _in_thread])
async def test_what_it_leaves_in_its_group_ends_with_it(run):
    result = await run(["sh", "-c", "sleep 60 & echo $!"])
    await all_gone([int(result.stdout)])


@pytest.mark.parametrize("run", [run_helper, _in_thread])
async def test_a_daemon_that_holds_the_pipes_does_not_hold_us(run):
    start = time.monotonic()
    result = await run(["sh", "-c", "setsid sleep 60 & echo $!"])
    assert time.monotonic() - start < 2
    os.kill(int(result.stdout), signal.SIGKILL)


@LINUX
async def test_a_helper_ends_when_we_are_killed(tmp_path):
    file = tmp_path / "pid"
    program = f"""
from lyma_server.isolation.process import run_helper_blocking
run_helper_blocking(["sh", "-c", "echo $$ > {file}; exec sleep 60"])
"""
    root = str(Path(__file__).parents[2])
    parent = start_child([sys.executable, "-c", program], env={"PYTHONPATH": root, "PATH": os.environ["PATH"]})
    await until(lambda: file.exists() and file.read_text().strip() != "")
    os.kill(parent.pid, signal.SIGKILL)
    await until(lambda: not alive(int(file.read_text())))
    await parent.stop()


async def test_many_at_once():
    results = await asyncio.gather(*(run_helper(["cat"], stdin=str(number).encode()) for number in range(20)))
    assert [int(result.stdout) for result in results] == list(range(20))


async def test_a_child_is_talked_to_line_by_line():
    child = start_child(["cat"])
    lines = child.lines()
    for word in (b"one", "zwei – ü".encode(), b"x" * 30_000):
        await child.write(word + b"\n")
        assert await anext(lines) == word
    assert child.status is None
    assert await child.stop() == -signal.SIGTERM
    assert await child.stop() == -signal.SIGTERM


async def test_a_child_that_ends_is_collected_and_its_last_words_are_there():
    child = start_child(["sh", "-c", "printf 'a\\nb'; echo why >&2; exit 7"])
    assert await asyncio.gather(child.wait(), child.wait()) == [7, 7]
    assert [line async for line in child.lines()] == [b"a", b"b"]
    assert child.stderr == "why\n"
    with pytest.raises(BrokenPipeError):
        await child.write(b"x" * (1 << 20))
    assert await child.stop() == 7


async def test_only_the_end_of_a_long_stderr_is_kept():
    child = start_child(["sh", "-c", "head -c 1000000 /dev/zero >&2; echo end >&2"])
    await child.wait()
    await child.stop()
    assert child.stderr.endswith("end\n")
    assert len(child.stderr) <= 16 << 10


async def test_stopping_wakes_who_waits_for_a_line():
    child = start_child(["sleep", "60"])
    reader = asyncio.create_task(anext(child.lines(), None))
    waiter = asyncio.create_task(child.wait())
    await asyncio.sleep(0)
    await child.stop()
    assert await reader is None
    assert await waiter == -signal.SIGTERM


async def test_cancelling_a_stop_still_kills(tmp_path):
    file = tmp_path / "pids"
    child = start_child(["sh", "-c", STUBBORN.format(file=file)])
    await until(lambda: len(said_pids(file)) == 2)
    stop = asyncio.create_task(child.stop())
    await asyncio.sleep(0)
    stop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stop
    assert child.status == -signal.SIGKILL
    await all_gone(said_pids(file))


async def test_a_descriptor_is_handed_over_only_where_asked(tmp_path):
    (tmp_path / "f").write_text("content")
    with (tmp_path / "f").open() as file:
        number = file.fileno()
        child = start_child([*PYTHON, f"import os; print(os.read({number}, 9).decode())"], pass_fds=[number])
        assert [line async for line in child.lines()] == [b"content"]
        await child.stop()
