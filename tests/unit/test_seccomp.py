"""The filter of the commands, run by hand: what it answers to each call, on each architecture."""

from __future__ import annotations

import errno
import struct

import pytest

from lyma_server.isolation import seccomp
from lyma_server.isolation.seccomp import ALLOW, ASK, ERRNO, MACHINES, filter_program

REFUSE = ERRNO | errno.EPERM
I386, ARM = 0x40000003, 0x40000028


def answer(program: bytes, audit: int, number: int, first: int = 0) -> int:
    """What the kernel's interpreter would return for a call."""
    data = struct.pack("=iIQ6Q", number, audit, 0, first, 0, 0, 0, 0, 0)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == seccomp.LOAD:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == seccomp.RETURN:
            return operand
        else:
            holds = value == operand if code == seccomp.JUMP_EQUAL else value >= operand
            at += if_true if holds else if_false


@pytest.fixture(params=MACHINES)
def machine(request):
    return MACHINES[request.param]


@pytest.fixture
def program(machine):
    return filter_program(machine)


def test_both_calls_that_execute_are_asked_about(program, machine):
    assert answer(program, machine.audit, machine.execve) == ASK
    assert answer(program, machine.audit, machine.execveat) == ASK


def test_other_calls_pass(program, machine):
    others = set(range(600)) - {machine.execve, machine.execveat}
    assert {answer(program, machine.audit, number) for number in others} == {ALLOW}


def test_every_other_gate_is_shut(program, machine):
    foreign = {I386, ARM, *(other.audit for other in MACHINES.values())} - {machine.audit}
    for number in (0, 1, 11, 221, 59, 281, 322, 358):
        assert {answer(program, audit, number) for audit in foreign} == {REFUSE}
    x32 = struct.unpack("=i", struct.pack("=I", seccomp.X32_BIT | 520))[0]
    assert answer(program, machine.audit, x32) == REFUSE
    assert answer(program, machine.audit, -1) == REFUSE


def test_numbers_are_those_of_this_machine():
    """The control of the table: the numbers that Python was built with."""
    import platform

    if platform.machine() not in MACHINES:
        pytest.skip("this kernel is of another architecture")
    assert seccomp.NOTIFICATION.size == 80
    assert seccomp.ANSWER.size == 24
