"""The server lives as long as its editor: not a moment less, and two seconds more at most."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.processes import LIMIT_S, children, is_gone, wait_until_gone
from tests.raw_client import ROOT, SERVER, RawClient, environment


@pytest.fixture
def client():
    with RawClient() as client:
        client.initialize()
        yield client


@pytest.mark.parametrize("busy", ["say hello", "hang", "stream 0", "block 1"])
def test_the_end_of_the_input_ends_it(client: RawClient, busy: str) -> None:
    client.request("lyma/ask", {"prompt": busy})
    client.event("turn.started")
    start = time.monotonic()
    client.process.stdin.close()
    assert client.wait() == 1
    assert time.monotonic() - start < LIMIT_S


def test_a_loop_that_is_stuck_ends_too(client: RawClient) -> None:
    client.request("lyma/ask", {"prompt": "block 60"})
    client.event("turn.started")
    start = time.monotonic()
    client.process.stdin.close()
    client.wait()
    assert time.monotonic() - start < LIMIT_S


def test_a_closed_output_ends_it_with_nothing_to_say() -> None:
    with RawClient(read=False) as client:
        client.request("initialize", {"processId": None, "capabilities": {}})
        assert os.read(client.process.stdout.fileno(), 10)
        client.process.stdout.close()
        start = time.monotonic()
        assert client.wait() == 1
        assert time.monotonic() - start < LIMIT_S


def test_exit_after_shutdown_is_0(client: RawClient) -> None:
    assert client.call("shutdown")["result"] is None
    assert client.call("lyma/status")["error"]["code"] == -32600
    client.notify("exit")
    assert client.wait() == 0
    assert bytes(client.errors) == b""


def test_exit_without_shutdown_is_1(client: RawClient) -> None:
    client.request("lyma/ask", {"prompt": "hang"})
    client.notify("exit")
    assert client.wait() == 1
    assert bytes(client.errors) == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_quietly(client: RawClient, number: int) -> None:
    client.request("lyma/ask", {"prompt": "hang"})
    client.event("turn.started")
    client.process.send_signal(number)
    assert client.wait() == 1
    assert bytes(client.errors) == b""


def test_a_process_of_another_namespace_is_not_missed() -> None:
    with RawClient() as client:
        client.initialize(processId=2**22 + 12345)
        assert "result" in client.call("lyma/status")


def test_a_closed_input_is_one_sentence() -> None:
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *SERVER],
        env=environment(), cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1
    assert ended.stdout == b""


@pytest.mark.parametrize(
    ("wrapper", "more"),
    [
        pytest.param((), {}, id="parent"),
        pytest.param(("sh", "-c", '"$@"; true', "sh"), {}, id="behind a shell"),
        pytest.param((), {"NAMELESS": "1"}, id="parent that is not named"),
    ],
)
def test_kill_of_the_client_with_its_pipes_held_open(wrapper: tuple[str, ...], more: dict[str, str]) -> None:
    """Another process keeps both pipes open, so that only the death of the client can be noticed."""
    command = (
        sys.executable,
        "-m",
        "tests.editors.doomed_client",
        "held",
        "spawn 601",
        "turn.started",
        *wrapper,
        *SERVER,
    )
    client = subprocess.Popen(command, env=environment(**more), cwd=ROOT, stdout=subprocess.PIPE)
    started, holder = map(int, client.stdout.readline().split())
    server = children(started)[0] if wrapper else started
    assert not is_gone(server)
    client.kill()
    client.wait()
    try:
        assert wait_until_gone([server]) < LIMIT_S
        assert not is_gone(holder)
    finally:
        client.stdout.close()
        for pid in (server, holder, *([started] if wrapper else [])):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in {*_sleepers()}:
            os.kill(pid, signal.SIGKILL)


def _sleepers() -> list[int]:
    """What the fake agent started without the care of a real one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes() == b"sleep\x00601\x00":
                found.append(int(entry.name))
    return found
