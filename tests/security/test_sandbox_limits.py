"""What there is only so much of: an evil agent takes all it can get, and the kernel gives it no more than its manifest says.

Each has a control: without the limit it gets more.
"""

from __future__ import annotations

import os
import re

import pytest

from tests.security.evil import SANDBOXED, attack, order, untouched, who

pytestmark = SANDBOXED

SMALL = {"memory_mb": 48, "scratch_mb": 4, "processes": 1}
MUCH = 50_000_000
PROCESSES = 4
BOMB = 40

TAKING = order("memory", "shared memory", "disk", limits=SMALL, facts={"bytes": MUCH})
TAKING_MORE = order("memory", "shared memory", "disk", limits=SMALL, facts={"bytes": MUCH}, weak=("memory", "disk"))
BOMBS = order("fork bomb", "thread bomb", limits={"processes": PROCESSES})
FREE_BOMBS = order("fork bomb", "thread bomb", limits={"processes": PROCESSES}, weak=("processes",))
LONE_BOMBS = order("fork bomb", "thread bomb")
GRANDCHILD = order("setsid", limits={"processes": PROCESSES})
ORPHAN = order("setsid", limits={"processes": PROCESSES}, weak=("own pid",))
FLOOD, FREE_FLOOD = order("flooding"), order("flooding", weak=("output",))
STUBBORN = order("sleeping", wall_s=1, grace_s=0.2)
SPARED = order("sleeping", wall_s=1, grace_s=0.2, weak=("kill",))
CPU = {"limits": {"cpu_s": 1}}
COMPUTING = order("plainly computing", **CPU)
IGNORING = order("computing", **CPU)
UNLIMITED = order(
    "plainly computing", **CPU, weak=("cpu", "watch"), wall_s=4, grace_s=0
)  # each holds without the other
FRAMES = {
    "bad UTF-8": "00000002" + b"{\xff".hex(),
    "duplicate names": "0000000d" + b'{"a":1,"a":2}'.hex(),
    "a list": "00000002" + b"[]".hex(),
    "too long": "00100001",
    "an unending nest": "00001000" + b"[".hex() * 4096,
}
SHOUTS = {name: order("shouting", facts={"frame": frame}, grace_s=0) for name, frame in FRAMES.items()}
HANDING = order("handing over", wall_s=1, grace_s=0)
ROOT_BOMB = order("fork bomb", limits={"processes": PROCESSES}, weak=("own user", "who", "drop"))
FILES = order("empty files", limits=SMALL, facts={"files": 20_000, "rest_s": 20})
FREE_FILES = order("empty files", limits=SMALL, facts={"files": 20_000, "rest_s": 0.5}, weak=("watch",))
QUICK = (
    FILES,
    FREE_FILES,
    TAKING,
    TAKING_MORE,
    BOMBS,
    FREE_BOMBS,
    LONE_BOMBS,
    GRANDCHILD,
    ORPHAN,
    FLOOD,
    FREE_FLOOD,
    STUBBORN,
    *SHOUTS.values(),
    HANDING,
)
TURNS = order("computing in turns", limits={"cpu_s": 1, "processes": PROCESSES})
FREE_TURNS = order(
    "computing in turns", limits={"cpu_s": 1, "processes": PROCESSES}, weak=("watch",), wall_s=5, grace_s=0
)
SLOW = (TURNS, FREE_TURNS, COMPUTING, IGNORING, UNLIMITED, SPARED)


@who
@pytest.mark.parametrize(("deed", "most"), [("memory", 0), ("shared memory", 0), ("disk", 4 << 20)])
def test_memory_and_disk_are_bounded(who, deed, most):
    outcome = attack(who, TAKING, QUICK)
    untouched(outcome)
    assert (outcome["said"][deed]["did"] or 0) <= most
    more = attack(who, TAKING_MORE, QUICK)
    assert more["said"][deed]["did"] >= MUCH, "the control"


@who
def test_empty_files_are_counted(who):
    outcome = attack(who, FILES, QUICK)
    untouched(outcome)
    assert (outcome["said"], outcome["reason"]) == (None, "files")
    assert attack(who, FREE_FILES, QUICK)["said"]["empty files"]["did"] == 20_000, "the control"


@who
@pytest.mark.parametrize("bomb", ["fork bomb", "thread bomb"])
def test_processes_and_threads_are_counted_together(who, bomb):
    outcome = attack(who, BOMBS, QUICK)
    untouched(outcome)
    assert 1 <= outcome["said"][bomb]["did"] < PROCESSES
    assert attack(who, LONE_BOMBS, QUICK)["said"][bomb]["did"] is None
    assert attack(who, FREE_BOMBS, QUICK)["said"][bomb]["did"] == BOMB, "the control"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_is_not_counted():
    """Another control: the kernel holds no root to a number of processes, so it becomes somebody else first."""
    assert attack("root", ROOT_BOMB)["said"]["fork bomb"]["did"] == BOMB


@who
def test_nothing_survives_in_a_session_of_its_own(who):
    outcome = attack(who, GRANDCHILD, QUICK)
    assert outcome["said"]["setsid"]["did"] == "left"
    untouched(outcome)
    assert attack(who, ORPHAN, QUICK)["left"] == 1, "the control: without a PID namespace it lives on"


@who
def test_who_says_too_much_is_ended(who):
    outcome = attack(who, FLOOD, QUICK)
    untouched(outcome)
    assert (outcome["said"], outcome["reason"]) == (None, "output")
    assert re.fullmatch("x+", outcome["output"])
    assert attack(who, FREE_FLOOD, QUICK)["said"]["flooding"]["did"], "the control"


@who
def test_who_ignores_every_signal_is_ended_at_once(who):
    outcome = attack(who, STUBBORN, QUICK)
    untouched(outcome)
    assert (outcome["fault"], outcome["reason"]) == ("time is up", "stopped")
    assert outcome["stopped_s"] < 3


@who
@pytest.mark.parametrize("shout", SHOUTS)
def test_what_is_odd_on_the_channel_ends_it(who, shout):
    outcome = attack(who, SHOUTS[shout], QUICK)
    untouched(outcome)
    assert outcome["said"] is None
    assert outcome["fault"] not in (None, "time is up")


@who
def test_no_descriptor_can_be_handed_out(who):
    """One comes along with a byte; `untouched` sees that the parent has none more."""
    outcome = attack(who, HANDING, QUICK)
    untouched(outcome)
    assert outcome["fault"] == "time is up", "the byte is only the beginning of a length"


@pytest.mark.full
@who
def test_asking_by_a_signal_would_not_end_it(who):
    """The control: only when the kernel's patience with bubblewrap ends, it goes."""
    assert attack(who, SPARED, SLOW)["stopped_s"] > 5


@pytest.mark.full
@who
def test_processor_time_is_bounded(who):
    outcome = attack(who, COMPUTING, SLOW)
    untouched(outcome)
    assert (outcome["said"], outcome["reason"]) == (None, "cpu")
    ignoring = attack(who, IGNORING, SLOW)
    untouched(ignoring)
    assert ignoring["said"] is None
    assert ignoring["reason"] in {"cpu", "signal"}, "whoever looks first: Lyma, or the kernel at its hard limit"
    assert attack(who, UNLIMITED, SLOW)["fault"] == "time is up", "the control: it would have gone on"


@pytest.mark.full
@who
def test_processor_time_is_that_of_all_processes_together(who):
    outcome = attack(who, TURNS, SLOW)
    untouched(outcome)
    assert (outcome["said"], outcome["reason"]) == (None, "cpu")
    assert attack(who, FREE_TURNS, SLOW)["fault"] == "time is up", "the control: the kernel counts each by itself"
