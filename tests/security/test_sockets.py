"""Sockets of the host, by which a command could have another program act for it: all are out of reach inside.

Each has a control that reaches it from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.executor import ground
from lyma_server.executor.run import Commands, Manner
from lyma_server.isolation import covering, kernel, tier
from lyma_server.isolation.covering import Watch
from lyma_server.isolation.family import descendants
from tests.security.test_enclosure import wait_until
from tests.security.world import BWRAPS, LINUX, MEANS, PATH, PLAIN, PYTHON, TIERS, WHO, made_world

pytestmark = LINUX

CONNECT = """
import socket, sys
place, kind = sys.argv[1:]
end = socket.socket(socket.AF_UNIX, getattr(socket, kind))
end.settimeout(2)
end.connect("\\0" + place[1:] if place[0] == "@" else place)
end.send(b"hello")
print("reached")
"""
SEND = """
import socket, sys
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
place = sys.argv[1]
pair[0].sendto(b"hello", "\\0" + place[1:] if place[0] == "@" else place)
print("reached")
"""


@pytest.fixture(params=TIERS)
def by_tier(request):
    return request.param


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture
def world(by_tier, who):
    with made_world(by_tier, who) as made:
        yield made


@contextlib.contextmanager
def listening(place: str, kind=socket.SOCK_STREAM):
    """A program of the host's that takes whoever comes."""
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind("\0" + place[1:] if place[0] == "@" else place)
        if kind != socket.SOCK_DGRAM:
            server.listen()
        if place[0] != "@":
            os.chmod(place, 0o777)
        try:
            yield place
        finally:
            Path(place).unlink(missing_ok=True)


def outside(world, *words) -> str:
    """The control."""
    given = {"PATH": PATH, "HOME": str(world.home)}
    done = subprocess.run([*world.drop, *words], capture_output=True, text=True, check=False, env=given, timeout=30)
    return done.stdout + done.stderr


def script(world, name: str, text: str) -> Path:
    place = world.work / name
    place.write_text(text)
    return place


def spots(world) -> dict[str, str]:
    """Where programs have their sockets."""
    number = os.urandom(4).hex()
    made = {
        "an editor's in /tmp": f"/tmp/nvim-{number}.sock",
        "docker's in /run": f"/run/lyma-test-{number}.sock" if os.geteuid() == 0 else f"/tmp/run-{number}.sock",
        "docker's in the home": str(world.home / "docker.sock"),
        "an editor's in the workspace": str(world.work / "nvim.sock"),
        "abstract": f"@lyma-test-{number}",
    }
    return {name: place for name, place in made.items() if place[0] == "@" or os.access(Path(place).parent, os.W_OK)}


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
async def test_no_socket_of_the_host_is_within_reach(world, kind):
    connect, send = script(world, "connect.py", CONNECT), script(world, "send.py", SEND)
    with contextlib.ExitStack() as stack:
        places = {name: stack.enter_context(listening(at, getattr(socket, kind))) for name, at in spots(world).items()}
        bounds = world.confine()
        for name, place in places.items():
            assert "reached" in outside(world, PYTHON, connect, place, kind), name
            _, said = await world.run(f'{PYTHON} "$1" "$2" {kind}', bounds, arguments=[connect, place])
            assert "reached" not in said, name
            if kind == "SOCK_DGRAM":
                assert "reached" in outside(world, PYTHON, send, place), name
                _, said = await world.run(f'{PYTHON} "$1" "$2"', bounds, arguments=[send, place])
                assert "reached" not in said, name
            wait = "Operation not permitted|No such file|refused|Permission denied"
            assert any(part in said for part in wait.split("|")), said


async def test_a_socket_that_the_user_lets_in_is_within_reach(world):
    connect = script(world, "connect.py", CONNECT)
    with listening(str(world.home / "docker.sock")) as place, listening(f"/tmp/lyma-test-{os.getpid()}") as other:
        bounds = world.confine(sockets=(Path(place),))
        _, said = await world.run(f'{PYTHON} "$1" "$2" SOCK_STREAM', bounds, arguments=[connect, place])
        assert "reached" in said
        _, said = await world.run(f'{PYTHON} "$1" "$2" SOCK_STREAM', bounds, arguments=[connect, other])
        assert ("reached" in said) is (world.tier == "landlock"), "Landlock cannot let in one alone; the notice says so"


async def test_commands_may_speak_to_each_other(world):
    own = script(
        world,
        "own.py",
        "import socket, sys\n"
        "for place in sys.argv[1:]:\n"
        "    a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\n"
        "    name = '\\0' + place[1:] if place[0] == '@' else place\n"
        "    a.bind(name); a.listen(); b.connect(name)\n"
        "print('spoke')\n",
    )
    _, said = await world.run(f'{PYTHON} "$1" "$2" @own $TMPDIR/own', arguments=[own, world.work / "own.sock"])
    assert ("spoke" in said) is (world.tier != "landlock"), said


@pytest.mark.skipif(kernel.landlock_abi() < 6, reason="this kernel cannot keep abstract sockets")
async def test_abstract_sockets_are_out_of_reach_where_the_kernel_cannot_keep_them(who):
    """An older kernel, by hand: then there are no Unix sockets at all."""
    with made_world("bwrap", who, abi=5) as world, listening(f"@lyma-test-{os.getpid()}") as place:
        connect = script(world, "connect.py", CONNECT)
        _, said = await world.run(f'{PYTHON} "$1" "$2" SOCK_STREAM', arguments=[connect, place])
        assert "PermissionError" in said


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not here")
async def test_tmux_of_the_host_runs_nothing_for_a_command(world):
    """By its own protocol: a command could have any other typed into a terminal of the user's."""
    name = f"lyma-{os.getpid()}"
    typed = world.home / "typed"
    type_in = f"tmux -L {name} send-keys 'touch {typed}' Enter"
    started = outside(
        world, "tmux", "-L", name, "-f", "/dev/null", "new-session", "-d", "-s", "host", "-x", "80", "/bin/sh"
    )
    assert started == ""
    try:
        await world.run(type_in, world.confine())
        await world.run(f"tmux -L {name} new-window 'touch {typed}'", world.confine())
        assert not typed.exists()
        outside(world, "sh", "-c", type_in)
        wait_until(typed.exists)
    finally:
        outside(world, "tmux", "-L", name, "kill-server")


@pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="dbus-daemon is not here")
@pytest.mark.parametrize("address", ["unix:path=/tmp/lyma-bus-{pid}", "unix:abstract=/tmp/lyma-bus-{pid}"])
async def test_a_message_bus_of_the_host_is_out_of_reach(world, address):
    address = address.format(pid=os.getpid())
    place = address.partition("=")[2]
    words = [
        "dbus-daemon",
        "--session",
        "--nofork",
        "--nopidfile",
        f"--address={address}",
        "--print-address",
    ]
    hello = (
        "import socket, sys, os\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(sys.argv[1].replace('@', '\\0'))\n"
        "s.send(b'\\0AUTH EXTERNAL ' + str(os.getuid()).encode().hex().encode() + b'\\r\\n'); print('answer', s.recv(99)[:2])\n"
    )
    knock = script(world, "hello.py", hello)
    at = ("@" if "abstract" in address else "") + place
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as bus:
        try:
            assert bus.stdout.readline().startswith("unix:")
            assert "answer" in outside(world, PYTHON, knock, at), "the control"
            _, said = await world.run(f'{PYTHON} "$1" "$2"', world.confine(), arguments=[knock, at])
            assert "answer" not in said
            assert "Error" in said
        finally:
            bus.kill()
            Path(place).unlink(missing_ok=True)


@pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
@pytest.mark.parametrize("spot", ["home", "workspace", "made anew"])
def test_a_socket_that_appears_later_is_hidden(who, spot):
    """Where a command may already wait for it; one that a command made itself stays."""
    with made_world("bwrap", who) as world, contextlib.ExitStack() as stack:
        place = world.home / "late.sock" if spot != "workspace" else world.work / "late.sock"
        if spot == "made anew":
            with listening(str(place)):
                fence = world.enclose(world.confine())
        else:
            fence = world.enclose(world.confine())
        connect = script(world, "connect.py", CONNECT)
        own = f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('{world.work}/own'); s.listen(); time.sleep(60)"
        serve = (
            f'{PYTHON} -c "{own}" & while read place; do {PYTHON} {connect} "$place" SOCK_STREAM 2>&1 | tail -1; done'
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        if spot == "made anew":
            stack.enter_context(made_socket_file(place))
        with subprocess.Popen([*world.drop, *fence.words, "/bin/sh", "-c", serve], cwd=world.work, **pipes) as inside:
            wait_until((world.work / "own").exists)
            place.unlink(missing_ok=True)
            stack.enter_context(listening(str(place)))
            watch = Watch(first_inside(inside.pid), fence.reach, sleepless=True)
            assert ask(inside, place) == "reached", "the control"
            assert look(world, watch)
            assert ask(inside, place) != "reached"
            assert look(world, watch)
            assert ask(inside, world.work / "own") == "reached"
            inside.stdin.close()
            inside.kill()


@contextlib.contextmanager
def made_socket_file(place: Path):
    """A socket that was there when the sandbox began."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        yield


def ask(inside, place) -> str:
    inside.stdin.write(f"{place}\n")
    return inside.stdout.readline().strip()


def first_inside(pid: int) -> int:
    """The shell: bubblewrap itself has a process outside and one inside."""
    wait_until(lambda: any(comm(each) == "sh" for each in descendants(pid)))
    return next(each for each in descendants(pid) if comm(each) == "sh")


def comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def look(world, watch) -> bool:
    """As the user whose sandbox it is; whether it could."""
    if not world.drop:
        watch.look()
        return True
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(PLAIN, PLAIN, PLAIN)
            os.setresuid(PLAIN, PLAIN, PLAIN)
            watch.look()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
@pytest.mark.parametrize("watched", [True, False])
async def test_a_command_under_way_does_not_reach_a_socket_that_appears(monkeypatch, watched):
    """All together: the supervisor watches while commands run. Unwatched is the control."""

    async def probed():
        return MEANS["bwrap"]

    monkeypatch.setattr(ground, "probe", probed)
    if not watched:
        monkeypatch.setattr(ground, "enclose", lambda *given: evolve(tier.enclose(*given), reach=None))
    with made_world("bwrap", "root" if os.geteuid() == 0 else "plain") as world:
        connect = script(world, "connect.py", CONNECT)
        place = world.home / "late.sock"
        here = ground.Ground(workspace=world.work, user_home=world.home, lyma_homes=(world.lyma,))
        commands = Commands(here, Manner({"PATH": PATH, "HOME": str(world.home)}))
        reach = f"{PYTHON} {connect} {place} SOCK_STREAM"
        try:
            assert (await commands.run("true")).status == 0
            with listening(str(place)):
                await asyncio.sleep(2 * covering.FRESH_S)  # a look that is younger than that need not have seen it
                assert ((await commands.run(reach)).status == 0) is not watched
            waiting = f"touch begun; while test ! -S {place}; do :; done; read -t 1.5 < <(sleep 9); {reach}"
            command = await commands.start(waiting)
            while not (world.work / "begun").exists():
                await asyncio.sleep(0.01)
            with listening(str(place)):
                assert (await command.process.status == 0) is not watched
        finally:
            await commands.close()
