"""The seccomp filter of the commands, and the words spoken with the kernel about it.

It sends every execve and execveat to a supervisor and refuses every other way into the kernel: the calls of another
architecture (an i386 execve by `int 0x80` would pass unseen) and those of x32. Standard library only, since the program
that starts commands inside the sandbox uses it. Structures and numbers are those of include/uapi/linux/seccomp.h,
filter.h and audit.h; the kernel asks a supervisor since 5.0.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import platform
import struct
from typing import Final, NamedTuple, TypeAlias

from lyma_server.isolation.kernel import call, set_no_new_privileges

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ASK, ALLOW, ERRNO = 0x7FC00000, 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16

X32_BIT: Final = 0x40000000
SET_MODE_FILTER: Final = 1
SPECULATION_ALLOWED: Final = 1 << 2
"""Before 5.16 a filter slowed down everything below it; what runs here guards no secret from itself."""
NEW_LISTENER: Final = 1 << 3
WAIT_KILLABLE: Final = 1 << 5
"""Linux 5.19: a signal that does not kill cannot restart a call that is being judged."""

RECEIVE, SEND, STILL_WAITS = 0xC0502100, 0xC0182101, 0x40082102
NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
ANSWER: Final = struct.Struct("=QqiI")
CONTINUE: Final = 1

Step: TypeAlias = "tuple[int, int, str | None, str | None]"
"""What to do, its operand, and where to go on if it holds and if not; null is the next step."""


class Machine(NamedTuple):
    """The kernel's name of an architecture, and the numbers of its calls."""

    audit: int
    execve: int
    execveat: int
    socket: int
    socketpair: int
    truncate: int
    io_uring_setup: int


MACHINES: Final = {
    "x86_64": Machine(0xC000003E, 59, 322, 41, 53, 76, 425),
    "aarch64": Machine(0xC00000B7, 221, 281, 198, 199, 45, 425),
}


class Notification(NamedTuple):
    """A thread that stands still in a system call until it is answered. Its arguments are addresses in its memory."""

    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]


def filter_program(machine: Machine) -> bytes:
    """The filter for one architecture."""
    return assemble(
        [
            *other_gates_shut(machine),
            ("", (JUMP_EQUAL, machine.execve, "ask", None)),
            ("", (JUMP_EQUAL, machine.execveat, "ask", None)),
            ("allow", (RETURN, ALLOW, None, None)),
            ("ask", (RETURN, ASK, None, None)),
            ("refuse", (RETURN, ERRNO | errno.EPERM, None, None)),
        ]
    )


def other_gates_shut(machine: Machine) -> list[tuple[str, Step]]:
    """The first steps of a filter: with the number of the call at hand, where it came by this architecture's own gate."""
    return [
        ("", (LOAD, ARCHITECTURE_AT, None, None)),
        ("", (JUMP_EQUAL, machine.audit, None, "refuse")),
        ("", (LOAD, NUMBER_AT, None, None)),
        ("", (JUMP_AT_LEAST, X32_BIT, "refuse", None)),
    ]


def assemble(steps: list[tuple[str, Step]]) -> bytes:
    """Labelled steps to the kernel's form, in which a jump counts the steps it leaves out."""
    places = {label: at for at, (label, _) in enumerate(steps) if label}

    def distance(label: str | None, at: int) -> int:
        return 0 if label is None else places[label] - at - 1

    return b"".join(
        struct.pack("=HBBI", code, distance(if_true, at), distance(if_false, at), operand)
        for at, (_, (code, operand, if_true, if_false)) in enumerate(steps)
    )


def install() -> int:
    """Put this process and all that it starts under the filter for ever; the descriptor on which the kernel asks.

    Raises OSError: ENOSYS where the kernel or the machine is not known, EBUSY where another supervisor is there already.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, "the exec guard does not know this machine")
    set_no_new_privileges()
    program = filter_program(machine)
    try:
        return add_filter(program, SPECULATION_ALLOWED | NEW_LISTENER | WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return add_filter(program, SPECULATION_ALLOWED | NEW_LISTENER)


def receive(listener: int) -> Notification | None:
    """The next question; None where who asked is gone."""
    buffer = bytearray(NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    number, pid, _, call_number, _, _, *arguments = NOTIFICATION.unpack(buffer)
    return Notification(number, pid, call_number, tuple(arguments))


def still_waits(listener: int, notification: Notification) -> bool:
    """Whether the thread is still there, so that what was read of /proc was of it and not of a later one."""
    try:
        fcntl.ioctl(listener, STILL_WAITS, struct.pack("=Q", notification.id))
    except OSError:
        return False
    return True


def answer(listener: int, notification: Notification, error: int = 0) -> bool:
    """Let the call go on, or make it fail with `error`. False where the thread is gone."""
    words = ANSWER.pack(notification.id, 0, -error, 0 if error else CONTINUE)
    try:
        fcntl.ioctl(listener, SEND, bytearray(words))
    except OSError as failure:
        if failure.errno != errno.ENOENT:
            raise
        return False
    return True


def add_filter(steps: bytes, flags: int = SPECULATION_ALLOWED) -> int:
    """Put this process and all that it starts under one more filter. Needs no_new_privs. Raises OSError."""
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.addressof(buffer))
    return call("seccomp", ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(flags), ctypes.byref(program))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))
