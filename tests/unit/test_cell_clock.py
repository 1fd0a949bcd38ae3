"""What a process and all below it have computed, counted while they run and after they have been collected."""

from __future__ import annotations

import os
import subprocess
import sys

from lyma_server.isolation.cell_clock import CellClock

BURN = "import time; until = time.process_time() + {}\nwhile time.process_time() < until: pass"
TREE = """
import subprocess, sys
subprocess.run([sys.executable, "-c", {burn!r}], check=True)
print("collected", flush=True)
with subprocess.Popen([sys.executable, "-c", {burn!r} + "\\nprint('below', flush=True); input()"], stdin=subprocess.PIPE):
    input()
"""


def test_time_of_children_collected_and_not():
    burn = BURN.format(0.15)
    words = [sys.executable, "-c", TREE.format(burn=burn)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tree:
        clock = CellClock(tree.pid)
        assert tree.stdout.readline() == "collected\n"
        first = clock.seconds()
        assert first >= 0.14
        assert tree.stdout.readline() == "below\n"
        second = clock.seconds()
        assert second >= first + 0.14
        tree.communicate("\n")
    assert clock.seconds() >= 0.14, "what was seen is not forgotten"


def test_what_is_gone_has_used_nothing():
    assert CellClock(2**22 + 1).seconds() == 0


def test_files_of_our_own_root_are_not_counted():
    """Bubblewrap begins there; what lies at the same place is no cell's."""
    assert not CellClock(os.getpid()).has_too_many_files("/tmp", 0)
