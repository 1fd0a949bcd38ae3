"""A soak that fails for want of a reply says where the server waits: a hang that cannot be explained helps nobody."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.editors.real_server import settings
from tests.processes import wait_for
from tests.security.world import LINUX
from tests.soak import evidence, house
from tests.soak.house import House
from tests.stub_provider import StubProvider, never_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = LINUX


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A server whose provider does not answer, with one ask under way."""
    monkeypatch.setattr(house, "PATIENCE_S", 60.0)
    with StubProvider([never_answer()]) as stub:
        server = House(settings(stub, tmp_path / "home"), tmp_path, (), lambda: "what the providers see")
        try:
            server.ask("lyma/ask", {"prompt": "go"})
            stub.wait_for_request(timeout_s=30)
            wait_for(lambda: rests(server.pid))
            monkeypatch.setattr(house, "DOUBT_S", 0.0)
            monkeypatch.setattr(house, "PATIENCE_S", 0.0)
            yield server
        finally:
            server.client.__exit__()


def rests(pid: int) -> bool:
    """Whether the event loop has nothing to do: its thread sleeps each time that we look."""
    looks = []
    for _ in range(5):
        time.sleep(0.02)
        looks.append(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0])
    return looks == ["S"] * 5


def test_it_names_the_tasks_with_where_they_wait_the_processes_and_the_events(waiting: House) -> None:
    with pytest.raises(AssertionError, match="no reply to Asked") as caught:
        waiting.settle()
    told = str(caught.value)
    for sign in ("task work of turn", "Watchdog.guard\n", "Thread 0x", "tests.soak.witness", "turn.started"):
        assert sign in told
    assert "what the providers see" in told
    assert '{"type":"turn"' in told


def test_it_says_that_the_event_loop_is_stuck(waiting: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "TESTIMONY_S", 0.2)
    os.kill(waiting.pid, signal.SIGSTOP)
    with pytest.raises(AssertionError, match="its event loop takes no step"):
        waiting.settle()


def test_a_reply_that_lay_there_while_nobody_looked_is_not_late(waiting: House) -> None:
    """The other server may take a minute to end, and this one's replies are taken after that."""
    asked = next(iter(waiting.waiting))
    waiting.client.notify("$/cancelRequest", {"id": asked})
    wait_for(lambda: asked in waiting.inbox.replies)
    waiting.tend()
    assert waiting.outcomes["lyma/ask cancelled"] == 1
