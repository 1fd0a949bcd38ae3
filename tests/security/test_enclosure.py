"""What commands cannot see, change or reach, whatever confines them: as root and as a plain user, with both settings."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import canary
from tests.security.world import LANDLOCK, LINUX, PATH, PYTHON, TIERS, WHO, WRITE, made_world

pytestmark = LINUX


@pytest.fixture(params=WRITE)
def write(request):
    return request.param


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture(params=TIERS)
def tier(request):
    return request.param


@pytest.fixture
def world(tier, who, write):
    with made_world(tier, who, write) as made:
        yield made


async def test_the_mask_holds_and_is_proven(world):
    await canary.prove_mask(world.words(), world.bounds, world.runtime)
    _, said = await world.run(f"ls -A {world.lyma} 2>/dev/null")
    assert said == ""
    assert [file.name for file in world.lyma.iterdir()] == ["config.toml"]


ROADS = [
    "cat {lyma}/config.toml",
    "cat ../.lyma/config.toml",
    "cat /proc/self/root{lyma}/config.toml",
    "cat {lyma}/../.lyma/./config.toml",
    "ln -s {lyma}/config.toml link; cat link",
    "ls -A {lyma} | grep .",
    "echo x > {lyma}/config.toml",
    "echo x >> {lyma}/config.toml",
    "echo x > {lyma}/new",
    "truncate -s 0 {lyma}/config.toml",
    "/usr/bin/python3 -c \"import os; os.truncate('{lyma}/config.toml', 0)\"",
    "rm -f {lyma}/config.toml && test ! -e {lyma}/config.toml && echo gone | grep -v gone",
    "mv new {lyma}/config.toml",
    "ln new {lyma}/approval",
    "mkdir {lyma}/approvals",
    "umount {lyma}",
    "mount -o remount,rw {lyma}",
    "mount --bind {home} /mnt && cat /mnt/.lyma/config.toml",
    "unshare -rm umount {lyma} && cat {lyma}/config.toml",
    "unshare -rm sh -c 'mount --bind {home} /mnt && cat /mnt/.lyma/config.toml'",
    "unshare -rm sh -c 'mount -o remount,rw {lyma} && touch {lyma}/x'",
    "unshare -r cat {lyma}/config.toml",
    "rmdir {lyma}",
    "mv {lyma} {home}/moved",
    "mv {home} {home}2 && mkdir -p {lyma} && echo forged > {lyma}/config.toml",
    "ln {lyma}/config.toml stolen",
    "cat /proc/1/root{lyma}/config.toml",
    "cat /proc/$PPID/root{lyma}/config.toml",
    "cat /proc/*/root{lyma}/config.toml 2>/dev/null",
    "nsenter -t 1 -m cat {lyma}/config.toml",
    "chroot / cat {lyma}/config.toml",
    "setpriv --reuid 12345 cat {lyma}/config.toml",
    "cd {lyma} && cat config.toml",
]


async def test_no_road_leads_past_the_mask(world):
    roads = [road.format(lyma=world.lyma, home=world.home) for road in ROADS]
    (world.work / "new").write_text("forged")
    if world.drop:
        os.chown(world.work / "new", 54321, 54321)
    results = await world.run_each(roads)
    assert list(results) == roads
    assert {road: said for road, (status, said) in results.items() if status == 0 or "canary" in said} == {}
    assert (world.lyma / "config.toml").read_text() == "key = 'canary'"
    assert [file.name for file in world.lyma.iterdir()] == ["config.toml"]


@pytest.mark.skipif(not LANDLOCK, reason="this kernel has no Landlock")
@pytest.mark.parametrize("abi", [version for version in (1, 2, 3, 4, 5) if version < LANDLOCK])
async def test_older_versions_of_landlock_hold_the_mask_too(abi, who):
    """Asked for what an older kernel knows, it gives no more; a road that only a newer one shuts, seccomp does."""
    with made_world("landlock", who, abi=abi) as world:
        await canary.prove_mask(world.words(), world.bounds, world.runtime)
        roads = [road.format(lyma=world.lyma, home=world.home) for road in ROADS]
        results = await world.run_each(roads)
        assert {road: said for road, (status, said) in results.items() if status == 0 or "canary" in said} == {}
        assert (world.lyma / "config.toml").read_text() == "key = 'canary'"
        assert await world.run("mkdir a b && echo x > a/x && mv a/x b/ && cat b/x && rm -r a b") == (0, "x\n")


def test_the_roads_are_roads(tmp_path):
    """The control: unconfined, the plain ones arrive."""
    home, lyma, work = tmp_path, tmp_path / ".lyma", tmp_path / "work"
    for road in ROADS[:15]:
        work.mkdir(exist_ok=True)
        lyma.mkdir(exist_ok=True)
        (lyma / "config.toml").write_text("key = 'canary'")
        (work / "new").write_text("forged")
        done = subprocess.run(
            ["sh", "-c", road.format(lyma=lyma, home=home)], cwd=work, capture_output=True, check=False
        )
        after = (lyma / "config.toml").read_text() if (lyma / "config.toml").exists() else ""
        assert done.returncode == 0 or after != "key = 'canary'", road
        for left in (*lyma.iterdir(), *work.iterdir()):
            left.rmdir() if left.is_dir() else left.unlink()


async def test_the_workspace_can_be_worked_in(world):
    status, said = await world.run("echo new > file && mkdir -p a/b && mv file a/b && cat a/b/file && rm -r a")
    assert (status, said) == (0, "new\n")
    script = "cat ../notes; umask 022; echo x > $TMPDIR/x && cat $TMPDIR/x && ls -A $TMPDIR"
    assert await world.run(script) == (0, "notesx\nx\n")


async def test_programs_find_what_they_need(world):
    program = (
        "import multiprocessing as m, socket, tempfile, os\n"
        "lock = m.Lock()\n"
        "with m.Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
        "open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(1); open('/dev/zero', 'rb').read(1)\n"
        "print(tempfile.gettempdir() == os.environ['TMPDIR'], open('/proc/self/status').readable())\n"
        "os.kill(os.getpid(), 0)\n"
    )
    (world.work / "program.py").write_text(program)
    status, said = await world.run(f"{PYTHON} program.py 2>&1; (echo out > /dev/stdout) | cat")
    assert (status, said) == (0, "3\nb'x'\nTrue True\nout\n")


async def test_what_lies_outside_is_written_only_where_that_is_asked_for(world, write):
    _, said = await world.run("echo changed > ../notes")
    assert ((world.home / "notes").read_text() == "changed\n") is (write == "everywhere"), said


DEEDS = [
    "echo x > /proc/sys/kernel/core_pattern",
    "echo h > /proc/sysrq-trigger",
    "echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "mount -t tmpfs none /mnt",
    "mount -o remount,rw /",
    "mknod disk b 254 0",
    "mknod /dev/disk b 254 0",
    "mknod disk c 1 1",
    "find /dev -type b | grep .",
    "cat /dev/vda | head -c 1 | grep -q .",
    "head -c 1 /dev/mem | grep -q .",
    "mount -t proc proc /mnt",
    "dmesg -c",
    "date -s 2001-01-01",
    "ip link set lo down",
    "ls -A /run | grep -v -e systemd -e resolvconf -e mount | grep .",
    "rm -f /run/*/* /run/* && echo removed | grep removed && false",
    "touch /usr/made /etc/made /boot/made",
]


async def test_the_machine_is_out_of_reach(world):
    deeds = [deed for deed in DEEDS if world.write == "workspace" or "touch" not in deed]
    results = await world.run_each(deeds)
    assert list(results) == deeds
    assert {deed: said for deed, (status, said) in results.items() if status == 0} == {}


async def test_the_environment_of_others_is_out_of_reach(world):
    secret = f"canary-{os.getpid()}"
    script = f"cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep {secret}"
    with subprocess.Popen([*world.drop, "sleep", "60"], env={"SECRET": secret}) as outside:
        try:
            wait_for_exec(outside.pid)
            control = subprocess.run([*world.drop, "sh", "-c", script], capture_output=True, check=False)
            status, said = await world.run(script)
        finally:
            outside.kill()
    assert control.returncode == 0, "the control"
    assert (status, said) == (1, "")


def wait_for_exec(pid: int) -> None:
    until = time.monotonic() + 5
    while b"sleep" not in Path(f"/proc/{pid}/cmdline").read_bytes() and time.monotonic() < until:
        os.sched_yield()


async def test_no_process_outside_can_be_ended_or_traced(world):
    with subprocess.Popen([*world.drop, "sleep", "60"]) as outside:
        try:
            wait_for_exec(outside.pid)
            trace = f"{PYTHON} -c \"import os; os.open('/proc/{outside.pid}/mem', os.O_RDWR)\""
            results = await world.run_each([f"kill -9 {outside.pid}", trace, f"cat /proc/{outside.pid}/maps | grep ."])
            await world.run("kill -9 -1")
            assert outside.poll() is None
        finally:
            outside.kill()
    assert {road: said for road, (status, said) in results.items() if status == 0} == {}


async def test_root_can_work_in_another_user_s_workspace(tier):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with made_world(tier, "root") as world:
        subprocess.run(["chown", "-R", "1000:1000", str(world.work)], check=True)
        await canary.prove_mask(world.words(), world.bounds, world.runtime)
        status, said = await world.run("echo a > file && chown 1000:1000 file && chmod 600 file && cat file")
        assert (status, said) == (0, "a\n")
        assert (world.work / "file").stat().st_uid == 1000
        assert await world.run(
            f"setpriv --reuid 1000 sh -c 'cat file && cat {world.lyma}/config.toml 2>/dev/null'"
        ) == (
            1,
            "a\n",
        )


DAEMONS = [
    "sleep 70 &",
    "setsid sleep 71 >/dev/null 2>&1 &",
    "(setsid setsid sleep 72 >/dev/null 2>&1 &) &",
    f'{PYTHON} -c "import os,time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); [os.close(n) for n in range(3)]; time.sleep(73)"',
]


@pytest.mark.parametrize("how", ["it ends", "it is killed", "its starter is killed"])
async def test_nothing_outlives_the_first_process(tier, who, how):
    with made_world(tier, who) as world:
        begun = world.work / "begun"
        script = "; ".join(daemon.removesuffix("&") + ("&" if daemon.endswith("&") else "") for daemon in DAEMONS)
        script = script.replace("&;", "&") + f"; touch {begun}" + ("" if how == "it ends" else "; sleep 74")
        words = [*world.words(), "/bin/sh", "-c", script]
        if how == "its starter is killed":
            words = ["/bin/sh", "-c", '"$@" & wait', "sh", *words]
        with subprocess.Popen(words, cwd=world.work, env={"PATH": PATH}) as first:
            wait_until(lambda: begun.exists() and (how == "it ends" or sleepers(world) >= {"70", "71", "72"}))
            if how != "it ends":
                first.send_signal(signal.SIGKILL)
        wait_until(lambda: not sleepers(world))


def sleepers(world) -> set[str]:
    """How long the sleepers sleep that work in that world."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(place / "cwd") == str(world.work):
                found.add((place / "cmdline").read_bytes().decode().split("\0")[-2])
        except (OSError, IndexError):
            continue
    return found


def wait_until(holds, patience_s: float = 5) -> None:
    until = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


async def test_descriptors_go_through(world):
    reading, writing = os.pipe()
    words = [*world.words(), PYTHON, "-c", f"import os; os.write({writing}, b'through')"]
    with subprocess.Popen(words, pass_fds=[writing], cwd=world.work) as process:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert pipe.read() == "through"
        assert process.wait() == 0


@pytest.mark.parametrize("status", [0, 3])
async def test_the_status_is_the_command_s(tier, who, status):
    with made_world(tier, who) as world:
        assert await world.run(f"exit {status}") == (status, "")
        assert (await world.run("kill -9 $$"))[0] == 128 + signal.SIGKILL
        assert not list(Path("/tmp").glob("lyma-????????????????"))


async def test_the_canary_finds_what_is_open(world):
    """The control: each hole that it is for."""
    with pytest.raises(MaskUnavailable, match="can be read"):
        await canary.prove_mask(world.drop, world.bounds, world.runtime)
    nothing_masked = world.words(evolve(world.bounds, masked=(), writable=(*world.bounds.writable, world.lyma)))
    with pytest.raises(MaskUnavailable, match="can be"):
        await canary.prove_mask(nothing_masked, world.bounds, world.runtime)
    with pytest.raises(MaskUnavailable, match=r"is not installed|No such file"):
        await canary.prove_mask([*world.drop, "/nowhere/bwrap"], world.bounds, world.runtime)
