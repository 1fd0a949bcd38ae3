"""What the filters of a cell say of a system call, worked out step by step as the kernel does it, for each machine."""

from __future__ import annotations

import errno
import platform
import socket
import struct

import pytest

from lyma_server.isolation import cell_filter
from lyma_server.isolation.cell_filter import ABSENT, FORBIDDEN, NUMBERS, ORDER, inner_filter, outer_filter
from lyma_server.isolation.seccomp import ALLOW, ERRNO, MACHINES

REFUSED, NO_SUCH_CALL = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
HARMLESS = {"x86_64": {"read": 0, "openat": 257, "exit": 60}, "aarch64": {"read": 63, "openat": 56, "exit": 93}}
THREAD, FORK, NEW_USER = 0x3D0F00, 0x1200011, 0x10000000
"""The flags with which glibc starts a thread and forks, and those of a namespace."""


@pytest.fixture(params=ORDER)
def machine(request, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: request.param)
    return request.param


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Run a filter on the data of one call (struct seccomp_data, little-endian)."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    at = held = 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            held &= operand
        elif code == 0x06:
            return operand
        else:
            holds = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}[code]
            at += if_true if holds else if_false


def call(program: bytes, machine: str, name: str, *arguments: int) -> int:
    number = NUMBERS[name][ORDER.index(machine)] if name in NUMBERS else HARMLESS[machine][name]
    return ALLOW + 1 if number < 0 else verdict(program, MACHINES[machine].audit, number, *arguments)


@pytest.mark.parametrize("alone", [True, False])
def test_the_outer_filter(machine, alone):
    program = outer_filter(alone=alone)
    for name in FORBIDDEN:
        assert call(program, machine, name) in (REFUSED, ALLOW + 1), name
    for name in ABSENT:
        assert call(program, machine, name) == NO_SUCH_CALL, name
    for name in ("execve", "execveat", *HARMLESS[machine]):
        assert call(program, machine, name) == ALLOW, name


@pytest.mark.parametrize(
    ("name", "arguments", "alone", "several"),
    [
        ("clone", (THREAD,), REFUSED, ALLOW),
        ("clone", (FORK,), REFUSED, ALLOW),
        ("clone", (FORK | NEW_USER,), REFUSED, REFUSED),
        ("clone", (0xFFFFFFFF00000000 | FORK,), REFUSED, ALLOW),
        ("ioctl", (0, 0x5412), REFUSED, REFUSED),
        ("ioctl", (0, 0xFFFFFFFF00005412), REFUSED, REFUSED),
        ("ioctl", (0, 0x541C), REFUSED, REFUSED),
        ("ioctl", (0, 0x5413), ALLOW, ALLOW),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), ALLOW, ALLOW),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_SEQPACKET), ALLOW, ALLOW),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM), REFUSED, REFUSED),
        ("socketpair", (socket.AF_INET, socket.SOCK_STREAM), REFUSED, REFUSED),
    ],
)
def test_what_is_decided_by_arguments(machine, name, arguments, alone, several):
    assert call(outer_filter(alone=True), machine, name, *arguments) == alone
    assert call(outer_filter(alone=False), machine, name, *arguments) == several


def test_the_inner_filter(machine):
    program = inner_filter()
    for name in ("execve", "execveat", "clone", "fork", "vfork", "seccomp"):
        assert call(program, machine, name) in (REFUSED, ALLOW + 1), name
    for name in HARMLESS[machine]:
        assert call(program, machine, name) == ALLOW


def test_other_gates_are_shut(machine):
    for program in (outer_filter(alone=True), outer_filter(alone=False), inner_filter()):
        other = next(facts.audit for name, facts in MACHINES.items() if name != machine)
        for architecture, number in ((other, 0), (0x40000003, 1), (MACHINES[machine].audit, 0x40000000)):
            assert verdict(program, architecture, number) == REFUSED


def test_each_call_is_decided_once():
    classes = (*FORBIDDEN, *ABSENT, *cell_filter.BY_ARGUMENT, *cell_filter.OFTEN_NEEDED)
    assert sorted(classes) == sorted(NUMBERS)
    for place in range(len(ORDER)):
        known = [numbers[place] for numbers in NUMBERS.values() if numbers[place] >= 0]
        assert len(set(known)) == len(known)


def test_an_unknown_machine_has_no_cells(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "sparc")
    for make in (inner_filter, lambda: outer_filter(alone=True)):
        with pytest.raises(OSError, match="not implemented"):
            make()
