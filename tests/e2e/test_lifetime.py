"""Nothing outlives its reason to live: not the server, not the model on board, not a helper, not the command of a key.

The real server is met while the model loads, while it answers, in a tool that hangs, and while the command of a key
hangs. Then its client is killed, with and without somebody else who holds the pipes, or the server itself is.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from attrs import frozen

from lyma_server.router.providers.socket_folder import SocketFolder
from tests.editors.real_server import COMMAND, settings
from tests.lyma import start_lyma
from tests.processes import LIMIT_S, family, find, is_gone, wait_for, wait_until_gone, words_of
from tests.raw_client import ROOT, environment
from tests.stub_provider import StubProvider, call_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("smollm_model")
ENDLESS = "Tell me a very long story."
MODEL, ASLEEP, LEFT_BEHIND = b"llama_child.py", b"sleep\x00600.25", b"sleep\x00600.75"
HANGS = "sleep 600.25 & sleep 600.75"
"""A program that hangs, and one that it has started and does not wait for."""

STATES = {"loading": MODEL, "answering": MODEL, "in a tool": ASLEEP, "at a key": ASLEEP}
"""Where the server is met, and by which process one sees that it is there."""

MARKS = {"loading": "turn.started", "answering": "item.delta", "in a tool": "tool_result", "at a key": "capabilities"}
ENDS = {
    "client killed": None,
    "client killed, pipes held": None,
    "server killed": signal.SIGKILL,
    "server SIGTERM": signal.SIGTERM,
    "server SIGHUP": signal.SIGHUP,
}
SHORT = (
    ("loading", "client killed"),
    ("answering", "client killed, pipes held"),
    ("at a key", "client killed, pipes held"),
    ("in a tool", "server SIGTERM"),
    ("answering", "server killed"),
    ("at a key", "server SIGHUP"),
)


@frozen
class Scene:
    """A client, its server, and all that this has started by now; `holder` keeps the pipes open, 0 if nobody does."""

    client: subprocess.Popen[bytes]
    server: int
    holder: int

    def end(self, how: str) -> None:
        """Do what is the end of it."""
        number = ENDS[how]
        if number is not None:
            os.kill(self.server, number)
            return
        self.client.kill()
        self.client.wait()


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider([call_tool("search", {"pattern": "x"})]) as stub:
        yield stub


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Folders for everything, and a ripgrep that hangs."""
    for name in ("tmp", "bin", "work", "home"):
        (tmp_path / name).mkdir(mode=0o700)
    helper = tmp_path / "bin/rg"
    helper.write_text(f"#!/bin/sh\n{HANGS}\n")
    helper.chmod(0o700)
    return tmp_path


def surroundings(place: Path, stub: StubProvider, state: str) -> dict[str, str]:
    """Variables that lead into `state`."""
    variables = settings(stub, place / "home")
    if STATES[state] is MODEL:
        variables = {"LYMA_HOME": str(place / "home"), "LYMA_ORDER": "embedded"}
    if state == "at a key":
        variables["LYMA_PROVIDERS__LOCAL__KEYS"] = f"cmd:{HANGS}"
    places = {"TMPDIR": str(place / "tmp"), "ROOT_URI": (place / "work").as_uri()}
    return environment(**variables, **places, PATH=f"{place / 'bin'}:{os.environ['PATH']}")


@contextmanager
def staged(place: Path, stub: StubProvider, state: str, *, held: bool) -> Iterator[Scene]:
    """The scene in `state`. Whatever lives on is killed in the end."""
    hold = "held" if held else "alone"
    words = [sys.executable, "-m", "tests.editors.doomed_client", hold, ENDLESS, MARKS[state], *COMMAND]
    variables = surroundings(place, stub, state)
    client = subprocess.Popen(words, env=variables, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = family(client.pid)
    try:
        server, holder = map(int, client.stdout.readline().split())
        wait_for(lambda: find(server, STATES[state]) and (STATES[state] is MODEL or find(server, LEFT_BEHIND)))
        found = family(client.pid)
        yield Scene(client, server, holder)
    finally:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        client.wait()
        client.stdout.close()


def check(place: Path, stub: StubProvider, state: str, how: str, pause_s: float) -> None:
    """Let it end and look who is still there."""
    with staged(place, stub, state, held="held" in how) as scene:
        time.sleep(pause_s)
        ours = family(scene.server)
        if how == "server killed":  # nobody is left who knew of what its helpers had started
            ours -= {pid for pid in ours if LEFT_BEHIND in words_of(pid) or ASLEEP in words_of(pid)}
        scene.end(how)
        assert wait_until_gone(ours) < LIMIT_S
        assert not scene.holder or not is_gone(scene.holder)
    start_anew(place)


def start_anew(place: Path) -> None:
    """Whoever starts next finds nothing that was left behind, or removes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place / "tmp"))
        SocketFolder().remove()
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.parametrize(("state", "how"), SHORT)
def test_nothing_is_left(state: str, how: str, place: Path, stub: StubProvider) -> None:
    check(place, stub, state, how, 0)


@pytest.mark.full
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("state", STATES)
def test_nothing_is_left_at_any_moment(state: str, how: str, place: Path, stub: StubProvider) -> None:
    chance = random.Random(f"{state} {how}")
    for _ in range(20):
        check(place, stub, state, how, chance.uniform(0, 0.5))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_command_that_is_stopped_leaves_no_command_of_a_key(number: int, place: Path, stub: StubProvider) -> None:
    variables = surroundings(place, stub, "at a key")
    with start_lyma("ask", "hi", env=variables, cwd=place / "work", start_new_session=True) as lyma:
        wait_for(lambda: find(lyma.pid, ASLEEP) and find(lyma.pid, LEFT_BEHIND))
        ours = family(lyma.pid)
        lyma.send_signal(number)
        assert wait_until_gone(ours) < LIMIT_S
        assert (lyma.wait(), *lyma.communicate()) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_command_that_is_killed_leaves_no_model(number: int, place: Path, stub: StubProvider) -> None:
    with start_lyma("ask", ENDLESS, env=surroundings(place, stub, "answering"), cwd=place / "work") as lyma:
        wait_for(lambda: find(lyma.pid, MODEL))
        ours = family(lyma.pid)
        lyma.send_signal(number)
        assert wait_until_gone(ours) < LIMIT_S
    start_anew(place)
