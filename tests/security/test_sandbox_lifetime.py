"""Of a compiled agent that has ended, however it ended, nothing is left: no process, descriptor, file or slot."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from lyma_server.errors import SandboxUnavailable
from lyma_server.factory.sandbox import Launch, Sandbox
from lyma_server.isolation import cell, cell_canary, cell_marks
from lyma_server.isolation.cell_sweep import sweep
from tests.agents import bundle
from tests.command_sessions import throwaway_home
from tests.guards import running_children
from tests.processes import descendants, find, is_gone, wait_for, wait_until_gone, words_of
from tests.raw_client import environment
from tests.security.evil import SANDBOXED, order, plainly, surroundings, who
from tests.security.world import PLAIN, PYTHON, caught_in_its_start

pytestmark = SANDBOXED
FEW, MANY = 5, 100


@pytest.fixture
def staged():
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="lyma-test-") as folder:
        Path(folder).chmod(0o755)
        inside = Path(folder, "in")
        inside.mkdir()
        yield inside


@pytest.fixture
def own_folder():
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="lyma-test-") as folder:
        yield Path(folder)


@pytest.fixture
async def sandbox():
    made = Sandbox()
    await made.prove()
    return made


def ours() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return found


async def begin(sandbox, staged):
    inside = await sandbox.start(Launch(bundle=bundle(), staged=staged))
    assert (await inside.channel.receive())["type"] == "hello"
    return inside


@pytest.mark.parametrize("times", [FEW, pytest.param(MANY, marks=pytest.mark.full)])
async def test_starts_leave_nothing(staged, times, monkeypatch):
    folder = staged.parent
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(cell_canary, "TEMPORARY", folder)
    sandbox = Sandbox()
    await (await begin(sandbox, staged)).stop(0)
    slots, descriptors, children = set(sandbox._slots), ours(), running_children()
    for _ in range(times):
        inside = await begin(sandbox, staged)
        ended = await inside.stop(0)
        assert ended.reason == "stopped"
        assert await inside.stop(0) == await inside.wait() == ended
    assert (sandbox._slots, ours(), running_children()) == (slots, descriptors, children)
    assert [*folder.rglob("*")] == [staged]


async def test_a_start_that_is_cancelled_leaves_nothing(sandbox, staged):
    await (await begin(sandbox, staged)).stop(0)
    slots, descriptors = set(sandbox._slots), ours()
    for step in range(12):
        starting = asyncio.ensure_future(sandbox.start(Launch(bundle=bundle(), staged=staged)))
        with suppress(TimeoutError):
            async with asyncio.timeout(step * 0.003):
                await asyncio.shield(starting)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await (await starting).stop(0)
    assert (sandbox._slots, ours()) == (slots, descriptors)


async def test_a_stop_that_is_cancelled_still_ends_it(sandbox, staged):
    inside = await begin(sandbox, staged)
    stopping = asyncio.ensure_future(inside.stop(60))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert (await inside.wait()).reason == "stopped"


async def test_it_ends_when_the_channel_does(sandbox, staged):
    inside = await begin(sandbox, staged)
    inside.channel.close()
    assert (await inside.wait()).reason == "ended"


async def test_it_ends_when_it_is_told_to(sandbox, staged):
    inside = await begin(sandbox, staged)
    await inside.channel.send({"type": "cancel"})
    assert (await inside.stop(20)).reason == "ended"


async def test_slots_are_given_out_once(sandbox, staged):
    sandbox._slots = {7}
    inside = await begin(sandbox, staged)
    with pytest.raises(SandboxUnavailable, match="wait for one to end"):
        await begin(sandbox, staged)
    await inside.stop(0)
    await asyncio.sleep(0)
    await (await begin(sandbox, staged)).stop(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_each_slot_has_a_user_of_its_own(sandbox, staged):
    users = []
    both = [await begin(sandbox, staged), await begin(sandbox, staged)]
    for pid in find(os.getpid(), b"/usr/bin/python3"):
        users.append(os.stat(f"/proc/{pid}").st_uid)
    for inside in both:
        await inside.stop(0)
    assert {cell_marks.FIRST_USER, cell.FIRST_USER + 1} <= set(users)
    assert 0 not in users


async def test_it_outlives_the_thread_that_asked_for_it(sandbox, staged, monkeypatch):
    """Bubblewrap ends with the thread that started it, so that is always the same one; the control is another."""
    inside = await begin(sandbox, staged)
    await inside.channel.send({"type": "start", "spec": bundle().facts["spec"], "input": None})
    assert (await inside.channel.receive())["type"] == "llm.step"
    await inside.stop(0)
    short = ThreadPoolExecutor(max_workers=1)
    monkeypatch.setattr(cell, "_starter", short)
    with suppress(AssertionError, TypeError):
        inside = await begin(sandbox, staged)
    short.shutdown()
    assert (await inside.wait()).reason == "signal", "the control"
    inside.channel.close()


@who
def test_nothing_outlives_the_parent(who):
    """Killed, it cannot tidy up; the kernel does."""
    wanted = order("sleeping", wall_s=300)
    words = [*plainly(who), PYTHON, "-m", "tests.security.evil_run", f"[{wanted}]"]
    with subprocess.Popen(
        words, env=surroundings(), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as parent:
        wait_for(lambda: any(map(runs_inside, descendants(parent.pid))), within_s=60)
        started = descendants(parent.pid)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    inside = [pid for pid in started if not victim(pid)]
    assert len(inside) >= 3
    assert wait_until_gone(inside) < 5
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@who
def test_what_was_staged_goes_with_the_parent(who, own_folder):
    """And nothing else: a link is not followed, what lies beside it stays."""
    own_folder.chmod(0o711)
    for name in ("workspace/src", "beside", "runs", "staging"):
        (own_folder / name).mkdir(parents=True)
    (own_folder / "workspace/src/a").write_text("staged")
    (own_folder / "beside/kept").write_text("kept")
    if who == "plain" and os.geteuid() == 0:
        for path in (own_folder, *own_folder.rglob("*")):
            os.chown(path, PLAIN, PLAIN)
    words = [*plainly(who), PYTHON, "-m", "tests.security.killed_run", str(own_folder)]
    with subprocess.Popen(words, env=surroundings(), cwd="/", stdout=subprocess.PIPE, text=True) as parent:
        place = Path(parent.stdout.readline().strip())
        assert (place / "src/a").read_text() == "staged"
        place.chmod(0o700)
        (place / "link").symlink_to(own_folder / "beside")
        (own_folder / "staging/lyma-staging-of-another").mkdir()
        (place.parent / "tree").symlink_to(own_folder / "beside")
        started = descendants(parent.pid)
        assert len(started) >= 4
        parent.kill()
    killed = time.monotonic()
    wait_for(lambda: not place.parent.exists() and not [pid for pid in started if not is_gone(pid)])
    assert time.monotonic() - killed < 3
    left = sorted(str(path.relative_to(own_folder)) for path in own_folder.rglob("*") if ".staging" not in path.name)
    kept = ["beside", "beside/kept", "runs", "staging", "staging/lyma-staging-of-another"]
    assert left == [*kept, "workspace", "workspace/src", "workspace/src/a"]


@pytest.mark.parametrize("mark", [cell_marks.ENTER_INSIDE, cell_marks.OUR_WORD], ids=["an agent's", "the commands'"])
def test_what_was_left_in_the_middle_of_a_start_is_swept(mark):
    """Bubblewrap that is killed before it has let its child go on leaves it behind, whatever it was told; the trap itself."""
    reading, writing = os.pipe()
    user = cell_marks.FIRST_USER
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if os.geteuid() == 0 else []
    info = os.open(os.devnull, os.O_WRONLY)
    words = [*(drop if mark == cell_marks.ENTER_INSIDE else ()), *caught_in_its_start(reading, info, mark)]
    with subprocess.Popen(words, pass_fds=[reading, info], env={}) as bubblewrap:
        wait_for(lambda: descendants(bubblewrap.pid))
        (first,) = descendants(bubblewrap.pid)
        assert first not in sweep(), "its bubblewrap is there"
        bubblewrap.kill()
        bubblewrap.wait()
    for descriptor in (reading, writing, info):
        os.close(descriptor)
    assert not is_gone(first), "the trap"
    assert first in sweep()
    assert wait_until_gone([first]) < 5


def test_nothing_is_left_of_a_sandbox_of_commands_whose_lyma_is_killed_in_the_middle_of_its_start():
    with throwaway_home() as home:
        words = [sys.executable, "-m", "tests.security.killed_start", str(home)]
        with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True) as parent:
            first = int(parent.stdout.readline())
            started = descendants(parent.pid)
            assert first in started
            parent.kill()
        assert wait_until_gone(started) < 5


def runs_inside(pid: int) -> bool:
    """The runner itself."""
    return words_of(pid).startswith(b"/usr/bin/python3\0-I\0-S")


def victim(pid: int) -> bool:
    """The driver's own child, which it would have ended itself."""
    return words_of(pid).startswith(b"sleep\x00300")
