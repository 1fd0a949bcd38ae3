"""No way out of the sandbox of compiled agents: an evil agent tries each, as root's and as a plain user's.

Each row has a control: without the defence that it is for, the same deed works. Where several defences stand in its way,
each of them alone holds, too.
"""

from __future__ import annotations

import os

import pytest
from attrs import frozen

from tests.security.evil import CANARY, SANDBOXED, attack, order, untouched, who
from tests.security.world import BWRAPS

pytestmark = SANDBOXED


@frozen
class Row:
    """`layers` are what must all be gone for the deed to work. `kernel` may refuse it by itself, on some machines."""

    deed: str
    layers: tuple[str, ...]
    root_only: bool = False
    kernel: bool = False


ROWS = (
    Row("tcp", ("filters", "own net")),
    Row("tcp6", ("filters", "own net"), kernel=True),
    Row("dns", ("filters", "own net")),
    Row("abstract", ("filters", "own net")),
    Row("unix", ("filters", "own files")),
    Row("netlink", ("filters",)),
    Row("datagram pair", ("filters",)),
    Row("home", ("own files",)),
    Row("shadow", ("own files",)),
    Row("dots", ("own files",)),
    Row("descriptors", ("descriptors",)),
    Row("environment", ("environment",)),
    Row("write /", ("closed",)),
    Row("write /dev", ("devices",)),
    Row("write inputs", ("read-only inputs",)),
    Row("proc sys", ("proc",)),
    Row("core_pattern", ("proc", "drop"), root_only=True),
    Row("proc writes", ("proc", "drop"), root_only=True),
    Row("sys", ("sys",)),
    Row("first process", ("proc",), kernel=True),
    Row("attributes", ("filters",), kernel=True),
    Row("asynchronous", ("filters",), kernel=True),
    *(
        Row(name, ("filters",))
        for name in (
            "unshare", "setns", "mount", "ptrace", "process_vm_readv", "process_vm_writev", "clone3", "memfd", "shmget", "msgget",
            "semget", "personality", "handles", "seccomp", "execveat", "TIOCSTI", "open_tree",
        )
    ),
    *(
        Row(name, ("filters",), kernel=True)
        for name in ("bpf", "io_uring", "keyctl", "add_key", "userfaultfd", "mq_open", "perf_event_open", "kcmp", "x32")
    ),
    Row("fork", ("filters", "processes")),
    Row("thread", ("filters", "processes")),
    Row("signal", ("own pid",)),
)  # fmt: skip
AWAY = ("own pid", "own user", "drop", "who", "capabilities")
"""What would have to go, together, for these to be within reach: no defence of its own, but several."""
BEYOND = ("roots", "raw")


def without(layers: tuple[str, ...]) -> str:
    """One evil agent for all deeds with these layers, or in whose way this one stands, too."""
    return order(*(row.deed for row in ROWS if set(layers) <= set(row.layers)), weak=layers)


WHOLE = order(*(row.deed for row in ROWS), *BEYOND, "signal above")
EXEC, ANY_EXEC = order("exec"), order("exec", weak=("inner filter",))
ABOVE = order("signal above", weak=("own pid",))
TOO_EARLY = order("exec", weak=("late inner filter",))
LAYERED = [row for row in ROWS if len(row.layers) > 1]
ORDERS = tuple(
    dict.fromkeys(
        [
            *(WHOLE, EXEC, ANY_EXEC, ABOVE, TOO_EARLY),
            *(without(row.layers) for row in ROWS),
            *(without((layer,)) for row in LAYERED for layer in row.layers),
        ]
    )
)
ids = [row.deed for row in ROWS]


@who
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_nothing_can_be_done(row, who):
    outcome = attack(who, WHOLE, ORDERS)
    untouched(outcome)
    assert outcome["said"][row.deed]["did"] is None


@who
def test_other_roots_and_raw_sockets_are_out_of_reach(who):
    outcome = attack(who, WHOLE, ORDERS)
    assert [outcome["said"][deed]["did"] for deed in ("roots", "raw", "signal above")] == [None, None, None]
    assert (outcome["status"], outcome["reason"]) == (0, "ended")


@who
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_each_deed_works_without_its_defences(row, who):
    if row.root_only and who == "plain":
        pytest.skip("needs root")
    outcome = attack(who, without(row.layers), ORDERS)
    did = outcome["said"][row.deed]["did"]
    if row.kernel and did is None:
        pytest.skip("this kernel refuses it by itself")
    assert did
    if row.deed in ("tcp", "tcp6", "dns", "unix", "abstract"):
        assert row.deed in outcome["arrived"]
    if row.deed == "signal":
        assert not outcome["victim"]
    if row.deed == "write inputs":
        assert outcome["staged"] == "evil"


@who
@pytest.mark.parametrize("row", LAYERED, ids=lambda row: row.deed)
def test_one_layer_of_several_is_enough(row, who):
    for layer in row.layers:
        if layer == "drop" and who == "plain":
            continue
        outcome = attack(who, without((layer,)), ORDERS)
        assert row.deed not in outcome["arrived"]
        assert outcome["said"][row.deed]["did"] in (None, *(["sent"] if row.deed == "dns" else []))


def test_other_roots_and_raw_sockets_would_be_within_reach():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    outcome = attack("root", order(*BEYOND, weak=("filters", *AWAY)))
    assert outcome["said"]["roots"]["did"] == "the secret of the host"
    assert outcome["said"]["raw"]["did"] == "made"


@who
def test_no_program_can_be_executed(who):
    outcome = attack(who, EXEC, ORDERS)
    untouched(outcome)
    assert outcome["said"]["exec"]["why"] == "EPERM"
    assert attack(who, ANY_EXEC, ORDERS)["said"] is None, "the control: it became another program"


@who
def test_the_filter_that_forbids_to_execute_must_come_later(who):
    """Given to bubblewrap it forbids what bubblewrap does next; so there are two."""
    outcome = attack(who, TOO_EARLY, ORDERS)
    assert outcome["said"] is None
    assert "bwrap: execvp" in outcome["output"]


@pytest.mark.full
@pytest.mark.skipif(len(BWRAPS) < 2, reason="there is no second bubblewrap")
@who
def test_nothing_can_be_done_with_the_other_bubblewrap(who):
    """The package's, which is of another age than the system's."""
    deeds = [row.deed for row in ROWS]
    outcome = attack(who, order(*deeds, *BEYOND, "signal above", weak=("nothing",), bwrap=str(BWRAPS[1])))
    untouched(outcome)
    assert {deed: outcome["said"][deed]["did"] for deed in deeds} == dict.fromkeys(deeds)


@who
def test_what_is_above_cannot_be_killed(who):
    outcome = attack(who, ABOVE, ORDERS)
    assert outcome["said"] is None, "the control: it has ended the whole sandbox"


@who
def test_the_controls_find_what_they_look_for(who):
    """What the secrets are: a search for something else would be no proof."""
    outcome = attack(who, without(("own files",)), ORDERS)
    assert outcome["said"]["home"]["did"] == "the secret of the host"
    assert "root:" in outcome["said"]["shadow"]["did"]
    assert CANARY not in str(attack(who, WHOLE, ORDERS))
