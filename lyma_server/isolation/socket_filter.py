"""The seccomp filter that keeps commands from sockets which nothing else keeps them from.

Landlock does not know sockets that have a place in the file system, and older ones not the abstract ones. Pairs of connected
sockets stay, since programs talk to their own children by them; not pairs of datagram sockets, which can still send to
any address. Standard library only. Numbers are those of include/uapi/linux/seccomp.h, filter.h and audit.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from typing import Final, NamedTuple

from lyma_server.isolation.kernel import call

LOAD, MASK, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
ABSENT: Final = 0x00050000 | errno.ENOSYS
"""As if the kernel had no such call: programs then do without."""

X32_BIT: Final = 0x40000000
SET_MODE_FILTER: Final = 1
KIND_BITS: Final = 0xF
"""Of the second argument of socket and socketpair; above them are flags."""

Step = tuple[int, int, int, int]
"""Operation, steps to skip if it holds, steps to skip if not, operand."""


class Calls(NamedTuple):
    """An architecture by the kernel's name for it, and the numbers of the calls that the filter knows."""

    audit: int
    socket: int
    socketpair: int
    truncate: int
    io_uring_setup: int


MACHINES: Final = {
    "x86_64": Calls(0xC000003E, 41, 53, 76, 425),
    "aarch64": Calls(0xC00000B7, 198, 199, 45, 425),
}


def filter_steps(calls: Calls, *, sockets: bool, truncate: bool) -> list[Step]:
    """The filter. `sockets` and `truncate` say what it refuses: Unix sockets, and to cut a file by its name.

    Every other architecture and x32 are refused too: by them the same calls have other numbers.
    """
    steps: list[Step] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_EQUAL, 1, 0, calls.audit),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, REFUSE),
    ]
    if truncate:
        steps += _on(calls.truncate, [(RETURN, 0, 0, REFUSE)])
    if sockets:
        unix = [(LOAD, 0, 0, ARGUMENTS_AT), (JUMP_EQUAL, 1, 0, socket.AF_UNIX), (RETURN, 0, 0, ALLOW)]
        kind = [
            (LOAD, 0, 0, ARGUMENTS_AT + 8),
            (MASK, 0, 0, KIND_BITS),
            (JUMP_EQUAL, 1, 0, socket.SOCK_STREAM),
            (JUMP_EQUAL, 0, 1, socket.SOCK_SEQPACKET),
            (RETURN, 0, 0, ALLOW),
        ]
        steps += _on(calls.io_uring_setup, [(RETURN, 0, 0, ABSENT)])  # a ring could open a socket without that call
        steps += _on(calls.socket, [*unix, (RETURN, 0, 0, REFUSE)])
        steps += _on(calls.socketpair, [*unix, *kind, (RETURN, 0, 0, REFUSE)])
    return [*steps, (RETURN, 0, 0, ALLOW)]


def install(*, sockets: bool, truncate: bool) -> None:
    """Put this process and all that it starts under the filter for ever. Needs no_new_privs.

    Raises OSError, ENOSYS where the kernel or the machine is not known.
    """
    calls = MACHINES.get(platform.machine())
    if calls is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    steps = [struct.pack("=HBBI", *step) for step in filter_steps(calls, sockets=sockets, truncate=truncate)]
    buffer = ctypes.create_string_buffer(b"".join(steps))
    program = _Program(len(steps), ctypes.addressof(buffer))
    call("seccomp", ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(0), ctypes.byref(program))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _on(number: int, then: list[Step]) -> list[Step]:
    """`then`, which ends with a return, for the call of that number; else go on behind it."""
    return [(JUMP_EQUAL, 0, len(then), number), *then]
