"""Commands with every real part: judged, confined, guarded, streamed, and ended to the last process."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.errors import CommandForbidden, ToolError
from lyma_server.executor import enclosure, ground, sessions
from lyma_server.isolation import kernel, probe
from tests.command_sessions import UNSEEN, commands_in, hide_words, throwaway_home

pytestmark = pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls")
NO_BWRAP = pytest.mark.skipif(not probe.find_bwraps(), reason="bubblewrap is not here")
NO_LANDLOCK = pytest.mark.skipif(not kernel.landlock_abi(), reason="this kernel has no Landlock")


@pytest.fixture(
    params=[pytest.param("bwrap", marks=NO_BWRAP), pytest.param("landlock", marks=NO_LANDLOCK)], autouse=True
)
def tier(request, monkeypatch):
    """By either means of confinement."""
    if request.param == "landlock":
        monkeypatch.setattr(probe, "find_bwraps", list)
    return request.param


def unexpected(notices: list[str]) -> list[str]:
    """Landlock is weaker, and that is said."""
    return [notice for notice in notices if "Landlock alone" not in notice]


@pytest.fixture
def home():
    with throwaway_home() as folder:
        yield folder


@pytest.fixture
async def commands(home):
    made = commands_in(home)
    yield made
    await made.close()


def running(marker: str) -> list[int]:
    """Processes of this machine whose words hold `marker`."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if marker in words:
                found.append(int(folder.name))
    return found


async def until_running(marker: str, count: int = 1) -> None:
    async with asyncio.timeout(5):
        while len(running(marker)) < count:
            await asyncio.sleep(0.01)


async def until_gone(marker: str, within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while running(marker):
            await asyncio.sleep(0.01)


async def test_a_command_has_a_status_and_its_output(commands, home):
    run = await commands.run("echo out; echo err >&2; pwd; exit 3")
    assert (run.status, run.output.text()) == (3, f"out\nerr\n{home}/work\n")
    assert not run.leaves_processes
    assert unexpected(commands.notices) == []


async def test_what_a_command_writes_stays(commands, home):
    assert (await commands.run("mkdir -p a/b && echo x > a/b/c && cat a/b/c")).output.text() == "x\n"
    assert (home / "work/a/b/c").read_text() == "x\n"
    assert (await commands.run("echo y > $TMPDIR/kept")).status == 0
    assert (await commands.run("cat $TMPDIR/kept")).output.text() == "y\n"
    assert not Path("/tmp/kept").exists()


async def test_a_forbidden_command_never_starts(commands, home):
    (home / "kept").touch()
    with pytest.raises(CommandForbidden) as refused:
        await commands.run("touch started; rm -rf ~")
    assert refused.value.data["rule"] == "fs-wipe"
    assert "Name the subfolder" in refused.value.message
    assert (home / "kept").exists()
    assert not (home / "work/started").exists()


async def test_what_only_shows_when_it_is_executed_is_refused_then(commands, home):
    hide_words(home, "rm", "-rf", str(home))
    run = await commands.run(UNSEEN)
    assert {each.rule for each in run.refusals} == {"fs-wipe"}
    assert "went on" in run.output.text()
    assert (home / ".lyma/config.toml").exists()


async def test_nothing_is_inherited_and_nothing_is_asked(commands):
    run = await commands.run(
        "ls -l /proc/self/fd | grep -c pipe; cat; test -t 0 || echo no terminal; ps -o sid= -p $$ | tr -d ' '; echo $$"
    )
    pipes, no_terminal, session, shell = run.output.text().split("\n")[:4]
    assert (pipes, no_terminal) == ("2", "no terminal")
    assert session == shell


GLIBC_OWN_SIGNALS = 0b11 << 31
"""Signals 32 and 33: glibc lets no program set them, so whoever started the tests decides (signal(7))."""


async def test_signals_and_masks_are_those_of_a_fresh_process(commands):
    run = await commands.run("cat /proc/self/status | grep -E 'SigBlk|SigIgn|SigCgt' | awk '{print $2}' | sort -u")
    masks = [int(mask, 16) & ~GLIBC_OWN_SIGNALS for mask in run.output.text().split()]
    assert masks
    assert not any(masks)


async def test_output_is_bounded_and_valid(home):
    commands = commands_in(home, output_limit=1000)
    try:
        run = await commands.run(r"printf 'first\n'; yes word | head -5000; printf '\xff\xfe\033[31mred\033[0m last\n'")
    finally:
        await commands.close()
    said = run.output.text()
    assert said.startswith("first\n")
    assert said.endswith("\ufffd\ufffdred last\n")
    assert "characters left out" in said
    assert len(said) < 1100


async def test_the_text_comes_while_the_command_runs(commands):
    heard = []
    task = asyncio.create_task(commands.run("echo one; read -t 60 < <(sleep 60)", on_text=heard.append))
    async with asyncio.timeout(10):
        while not heard:
            await asyncio.sleep(0.01)
    assert heard == ["one\n"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


DETACHED = (
    "(setsid sh -c 'trap \"\" TERM HUP; sleep {n}; true' >/dev/null 2>&1 &) ; (setsid setsid sleep {n} &) ; sleep {n}"
)


async def test_a_cancel_leaves_no_process_behind(commands):
    task = asyncio.create_task(commands.run(DETACHED.format(n="987.01")))
    await until_running("sleep\0987.01", 3)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 2
    assert running("987.01") == []


async def test_a_timeout_leaves_no_process_behind(commands):
    run = await commands.run("echo begun; " + DETACHED.format(n="987.02"), timeout_s=0.7)
    assert run.timed_out
    assert run.output.text() == "begun\n"
    assert running("987.02") == []
    assert not run.leaves_processes


async def test_a_stop_is_asked_for_before_it_is_forced(commands, home):
    task = asyncio.create_task(
        commands.run("trap 'echo asked > said; exit 0' TERM; echo x > ready; while :; do sleep 0.05; done")
    )
    async with asyncio.timeout(5):
        while not (home / "work/ready").exists():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (home / "work/said").read_text() == "asked\n"


async def test_a_background_command_lives_with_the_session(commands):
    server = await commands.start("echo up; sleep 987.03", background=True)
    await until_running("sleep\0987.03")
    other = await commands.run("pgrep -f 'sleep 987.03' > /dev/null && echo seen")
    assert other.output.text() == "seen\n"
    assert [(each.number, each.status) for each in commands.listed()] == [(server.number, None)]
    stopped = await commands.stop(server.number)
    assert (stopped.status, stopped.output.text()) == (128 + 15, "up\n")
    assert running("987.03") == []
    with pytest.raises(ToolError, match="no command 99"):
        await commands.stop(99)


async def test_what_a_command_leaves_running_is_listed_and_can_be_stopped(commands):
    run = await commands.run("sleep 987.04 > /dev/null 2>&1 & echo left")
    assert (run.status, run.output.text(), run.leaves_processes) == (0, "left\n", True)
    assert [each.number for each in commands.listed()] == [run.number]
    await commands.stop(run.number)
    assert running("987.04") == []
    assert commands.listed() == ()


async def test_the_end_of_the_session_ends_everything(home):
    commands = commands_in(home)
    await commands.start(DETACHED.format(n="987.05"), background=True)
    await until_running("sleep\0987.05", 3)
    await commands.close()
    await until_gone("987.05", 2)


async def test_a_killed_supervisor_takes_everything_with_it(commands):
    server = await commands.start(DETACHED.format(n="987.06"), background=True)
    await until_running("sleep\0987.06", 3)
    os.kill(commands._enclosure._supervisor.pid, 9)
    await until_gone("987.06", 2)
    async with asyncio.timeout(2):
        assert await server.process.status == -9
    run = await commands.run("echo again")
    assert run.output.text() == "again\n"
    assert "a new one was started" in unexpected(commands.notices)[0]


async def test_a_hundred_megabytes_stall_nothing(commands):
    import resource

    ticks, peak = [], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    task = asyncio.create_task(commands.run("head -c 100000000 /dev/zero | tr '\\0' 'x'"))
    while not task.done():
        began = time.monotonic()
        await asyncio.sleep(0.01)
        ticks.append(time.monotonic() - began)
    run = await task
    assert run.output.total == 100_000_000
    assert len(run.output.text()) < 70_000
    assert max(ticks) < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 30_000


async def test_a_folder_may_be_given_and_must_exist(commands, home):
    (home / "work/sub").mkdir()
    assert (await commands.run("pwd", folder=Path("sub"))).output.text() == f"{home / 'work' / 'sub'}\n"
    with pytest.raises(ToolError, match="no folder"):
        await commands.run("pwd", folder=Path("missing"))


async def test_a_command_cannot_reach_its_keeper(commands):
    run = await commands.run(
        "ls -l /proc/1/fd /proc/1/environ 2>&1 | head -2; kill -TERM $(pgrep -o python); sleep 0.1; echo alive"
    )
    assert run.output.text().endswith("alive\n")
    assert (await commands.run("echo still")).output.text() == "still\n"


async def test_many_at_once_are_kept_apart(commands):
    runs = await asyncio.gather(*(commands.run(f"echo {n}; exit {n}") for n in range(12)))
    assert [(run.status, run.output.text()) for run in runs] == [(n, f"{n}\n") for n in range(12)]


async def test_no_proof_of_the_mask_no_command(home, monkeypatch):
    from lyma_server.errors import MaskUnavailable

    async def unproven(*_):
        raise MaskUnavailable("not proven")

    monkeypatch.setattr(ground, "prove_mask", unproven)
    commands = commands_in(home)
    with pytest.raises(MaskUnavailable):
        await commands.run("touch ran")
    assert not (home / "work/ran").exists()
    await commands.close()


async def test_a_sandbox_that_does_not_start_is_told(home, monkeypatch):
    from lyma_server.errors import MaskUnavailable

    monkeypatch.setattr(enclosure, "KEEPER", ("-c", "raise SystemExit('the keeper is ill')"))
    commands = commands_in(home)
    with pytest.raises(MaskUnavailable, match="the keeper is ill"):
        await commands.run("true")
    await commands.close()


async def test_links_in_the_private_tmp_hide_nothing(commands, home):
    """The folder exists inside only, so the guard must look through the eyes of the command."""
    hide_words(home, "sh", "-c", f"cd $TMPDIR && ln -s {home.parent} here && rm -rf here/dev")
    run = await commands.run(UNSEEN)
    assert "went on" in run.output.text()
    assert (home / ".lyma/config.toml").exists()
    assert {each.rule for each in run.refusals} == {"fs-wipe"}


async def test_a_cancel_at_any_instant_leaves_nothing(commands):
    await commands.run("true")
    for pause in range(12):
        task = asyncio.create_task(commands.run("sleep 987.07"))
        await asyncio.sleep(pause / 400)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until_gone("987.07", 2)
    assert (await commands.run("echo fine")).output.text() == "fine\n"


async def test_a_socket_that_vanishes_while_the_sandbox_starts_hinders_nothing(home, monkeypatch, tier):
    survey, asked = ground.survey, []

    def late(*facts):
        asked.append(survey(*facts))
        gone = home.parent / "gone.sock"
        return evolve(asked[-1], hidden_sockets=(gone,)) if len(asked) == 1 else asked[-1]

    monkeypatch.setattr(ground, "survey", late)
    commands = commands_in(home)
    try:
        assert (await commands.run("echo ran")).output.text() == "ran\n"
    finally:
        await commands.close()
    assert len(asked) == {"bwrap": 2, "landlock": 1}[tier]


NONSENSE = """
import ctypes, itertools
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.argtypes = [ctypes.c_long] + [ctypes.c_ulong] * 5
odd = [0, 1, 7, 0xfff, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, id(libc), ctypes.addressof(ctypes.create_string_buffer(b"/bin/true" * 2000))]
numbers = {"x86_64": (59, 322), "aarch64": (221, 281)}[__import__("os").uname().machine]
for a, b in itertools.product(odd, odd):
    libc.syscall(numbers[0], a, b, 0, 0, 0)
    for c in odd[:8]:
        libc.syscall(numbers[1], a, b, c, 0, c)
print("survived")
"""


async def test_nonsense_handed_to_the_kernel_neither_ends_nor_passes_the_guard(commands, home):
    (home / "work/nonsense.py").write_text(NONSENSE)
    assert (await commands.run("python3 nonsense.py")).output.text() == "survived\n"
    assert (await commands.run("/bin/echo fine")).output.text() == "fine\n"
    assert not any("sandbox" in notice for notice in commands.notices)


async def test_only_so_many_idle_sandboxes_stay(home, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_OPEN", 2)
    known = sessions.CommandSessions(lambda _: commands_in(home))
    try:
        busy = known.of("busy", home)
        await busy.start("sleep 987.08", background=True)
        for name in ("a", "b", "c"):
            assert (await known.of(name, home).run("echo ran")).output.text() == "ran\n"
        async with asyncio.timeout(5):
            while sum(each.is_open for each in known._known.values()) > 2:
                await asyncio.sleep(0.01)
        assert busy.is_open
        assert not known.of("a", home).is_open
        assert not any("/tmp" in notice for notice in known.of("c", home).notices)
        assert (await known.of("a", home).run("echo again")).output.text() == "again\n"
        assert any("its /tmp is empty" in notice for notice in known.of("a", home).notices)
        assert len(running("987.08")) > 0
    finally:
        await known.close()
    await until_gone("987.08", 2)
