"""What we have put down goes when we are killed: at our end only, that and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lyma_server.isolation import heir, launch
from lyma_server.isolation.heir import Heir
from tests.guards import running_children
from tests.processes import wait_for

DYING = """
import os, sys
from pathlib import Path
from lyma_server.isolation.heir import Heir
heir = Heir.of([Path(sys.argv[1])])
if sys.argv[2] == "leaves":
    os._exit(0)
os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.fixture
def place(tmp_path):
    """A folder with a link out of it."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/kept").touch()
    place = tmp_path / "- odd 'name'"
    (place / "inner").mkdir(parents=True)
    (place / "inner/file").touch(mode=0o444)
    (place / "link").symlink_to(tmp_path / "beside")
    return place


@pytest.mark.parametrize("end", [str(int(signal.SIGKILL)), str(int(signal.SIGTERM)), "leaves"])
def test_what_was_put_down_goes_however_we_end(place, end):
    subprocess.run([sys.executable, "-c", DYING, str(place), end], check=False, timeout=30)
    wait_for(lambda: not place.exists())
    assert [path.name for path in place.parent.rglob("*")] == ["beside", "kept"]


def test_one_that_is_dismissed_removes_nothing(place):
    waiting = Heir.of([place])
    waiting.dismiss()
    waiting.dismiss()
    assert (place / "inner/file").exists()
    assert not running_children()


def test_nothing_but_our_end_moves_it(place):
    """A signal to all that we have started, or what a terminal sends, comes before our end."""
    waiting = Heir.of([place])
    launch.end_all()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        wait_for(lambda: is_ignored(waiting._process.pid, signal.SIGHUP))
        os.kill(waiting._process.pid, number)
    assert waiting._process.poll() is None
    assert place.exists()
    waiting._process.stdin.close()
    wait_for(lambda: not place.exists())
    waiting.dismiss()


def test_where_there_is_no_shell_there_is_none(place, monkeypatch):
    monkeypatch.setattr(heir, "SHELL", "/nowhere/sh")
    Heir.of([place]).dismiss()
    assert place.exists()


def is_ignored(pid, number):
    with open(f"/proc/{pid}/status") as status:
        mask = next(line for line in status if line.startswith("SigIgn")).split()[1]
    return int(mask, 16) >> (number - 1) & 1
