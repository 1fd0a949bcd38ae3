"""The seccomp filter that keeps commands from sockets which nothing else keeps them from.

Landlock does not know sockets that have a place in the file system, and older ones not the abstract ones. Pairs of connected
sockets stay, since programs talk to their own children by them; not pairs of datagram sockets, which can still send to
any address. Standard library only.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
from typing import TYPE_CHECKING, Final

from lyma_server.isolation.seccomp import (
    ALLOW,
    ERRNO,
    FIRST_ARGUMENT_AT,
    JUMP_EQUAL,
    LOAD,
    MACHINES,
    RETURN,
    add_filter,
    assemble,
    other_gates_shut,
)

if TYPE_CHECKING:
    from lyma_server.isolation.seccomp import Machine

REFUSE: Final = ERRNO | errno.EPERM
ABSENT: Final = ERRNO | errno.ENOSYS
"""As if the kernel had no such call: programs then do without."""

MASK: Final = 0x54
SECOND_ARGUMENT_AT: Final = FIRST_ARGUMENT_AT + 8
KIND_BITS: Final = 0xF
"""Of the second argument of socketpair; above them are flags."""


def filter_program(machine: Machine, *, sockets: bool, truncate: bool) -> bytes:
    """The filter. `sockets` and `truncate` say what it refuses: Unix sockets, and to cut a file by its name.

    Every other architecture and x32 are refused too: by them the same calls have other numbers.
    """
    steps = other_gates_shut(machine)
    if truncate:
        steps.append(("", (JUMP_EQUAL, machine.truncate, "refuse", None)))
    if sockets:  # a ring of io_uring could open one without these calls
        steps += [
            ("", (JUMP_EQUAL, machine.io_uring_setup, "absent", None)),
            ("", (JUMP_EQUAL, machine.socketpair, "pair", None)),
            ("", (JUMP_EQUAL, machine.socket, None, "allow")),
            ("", (LOAD, FIRST_ARGUMENT_AT, None, None)),
            ("", (JUMP_EQUAL, socket.AF_UNIX, "refuse", "allow")),
            ("pair", (LOAD, FIRST_ARGUMENT_AT, None, None)),
            ("", (JUMP_EQUAL, socket.AF_UNIX, None, "allow")),
            ("", (LOAD, SECOND_ARGUMENT_AT, None, None)),
            ("", (MASK, KIND_BITS, None, None)),
            ("", (JUMP_EQUAL, socket.SOCK_STREAM, "allow", None)),
            ("", (JUMP_EQUAL, socket.SOCK_SEQPACKET, "allow", "refuse")),
        ]
    return assemble(
        [
            *steps,
            ("allow", (RETURN, ALLOW, None, None)),
            ("absent", (RETURN, ABSENT, None, None)),
            ("refuse", (RETURN, REFUSE, None, None)),
        ]
    )


def install(*, sockets: bool, truncate: bool) -> None:
    """Put this process and all that it starts under the filter for ever. Needs no_new_privs.

    Raises OSError, ENOSYS where the kernel or the machine is not known.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    add_filter(filter_program(machine, sockets=sockets, truncate=truncate))
