"""Every test is watched: it may speak to loopback only, and must leave no process and no listener behind."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

PR_SET_CHILD_SUBREAPER = 36
LISTENING = "0A"
PATIENCE_S = 2
NAMES_ALLOWED = ("localhost", "")
ADDRESSED = {
    "socket.bind": 1,
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}
"""Audit event, and which of its arguments holds the address or name."""

LOOKED_AT: set[str] = set()
"""Sockets that listen nowhere beyond loopback: what lasts longer than a test is looked at once."""


class OutsideLoopback(Exception):
    """A test reached for the network."""


def keep_to_loopback(event: str, args: tuple) -> None:
    """An audit hook of the interpreter; it sees what C code of Python's does, too."""
    if event not in ADDRESSED:
        return
    target = args[ADDRESSED[event]]
    host = target[0] if isinstance(target, tuple) and target else target
    if isinstance(host, str) and not event_is_local(event, host, target):
        raise OutsideLoopback(f"{event} {target!r}: tests speak to loopback only")


def event_is_local(event: str, host: str, target: object) -> bool:
    if not event.startswith("socket.get") and not isinstance(target, tuple):
        return True  # a Unix socket
    if host.endswith((".invalid", ".localhost")) or host in NAMES_ALLOWED:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def adopt_orphans() -> None:
    """What a test's program leaves behind becomes our child, where it can be seen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def living_children() -> dict[int, str]:
    """Our child processes with their command lines; dead ones that we adopted are collected on the way."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            for pid in (task / "children").read_text().split():
                if (command := command_of(int(pid))) is not None:
                    found[int(pid)] = command
    return found


def running_children() -> dict[int, str]:
    """The same without the model's server, which lasts for the whole session of tests."""
    return {
        pid: command for pid, command in living_children().items() if "tests/llama/server_program.py" not in command
    }


def command_of(pid: int) -> str | None:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state != "Z":
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        os.waitpid(pid, os.WNOHANG)
    except (FileNotFoundError, ProcessLookupError, ChildProcessError):
        pass
    return None


def sockets_of(pids: set[int]) -> set[str]:
    """The names of the sockets that they hold."""
    return {name for pid in pids for name in descriptors(pid) if name.startswith("socket:")}


def listeners(held: set[str]) -> list[str]:
    """Addresses, as /proc/net writes them, on which one of these sockets listens beyond loopback."""
    if not held:
        return []  # those tables take the kernel milliseconds, after every test
    sockets = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and not is_loopback(fields[1].partition(":")[0]):
                    sockets[f"socket:[{fields[9]}]"] = fields[1]
    return [sockets[name] for name in held if name in sockets]


def is_loopback(address: str) -> bool:
    """Of the hexadecimal form in /proc/net/tcp: words in the byte order of the machine."""
    words = [bytes.fromhex(address[start : start + 8]) for start in range(0, len(address), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    real = ipaddress.ip_address(packed)
    mapped = getattr(real, "ipv4_mapped", None)
    return (mapped or real).is_loopback


def descriptors(pid: int) -> set[str]:
    names = set()
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                names.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return names


def left_over(before: dict[int, str]) -> dict[int, str]:
    """What runs that did not run before, after some patience for what has been killed and is not gone yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = {pid: command for pid, command in living_children().items() if pid not in before}
        if not now or time.monotonic() > deadline:
            return now
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _leaves_no_process_behind(request: pytest.FixtureRequest):
    """The first fixture of each test to be set up, and so the last to look."""
    if sys.platform != "linux":
        yield
        return
    before = living_children()
    yield
    held = sockets_of({os.getpid(), *living_children()})
    outside = listeners(held - LOOKED_AT)
    LOOKED_AT.update(held)
    orphans = left_over(before)
    for pid in orphans:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    assert not outside, f"listens beyond loopback: {outside}"
    assert not orphans, f"left running: {orphans}"


def pytest_configure() -> None:
    adopt_orphans()
    sys.addaudithook(keep_to_loopback)
