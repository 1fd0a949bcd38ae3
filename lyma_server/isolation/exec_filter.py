"""The seccomp filter that asks a supervisor about every execve and execveat, and the words spoken with the kernel about it.

Standard library only: it is also used by the program that starts commands inside the sandbox. Structures and numbers are
those of include/uapi/linux/seccomp.h and filter.h; the kernel has had this since 5.0.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import platform
import struct
from typing import Final, NamedTuple

from lyma_server.isolation.kernel import call, set_no_new_privileges

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ASK, ALLOW, REFUSE = 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.EPERM
NUMBER_AT, ARCHITECTURE_AT = 0, 4

X32_BIT: Final = 0x40000000
SET_MODE_FILTER: Final = 1
NEW_LISTENER: Final = 1 << 3
WAIT_KILLABLE: Final = 1 << 5
"""Linux 5.19: a signal that does not kill cannot restart a call that is being judged."""

RECEIVE, SEND, STILL_WAITS = 0xC0502100, 0xC0182101, 0x40082102
NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
ANSWER: Final = struct.Struct("=QqiI")
CONTINUE: Final = 1


class Machine(NamedTuple):
    """The kernel's name of an architecture, and the numbers of its two calls."""

    audit: int
    execve: int
    execveat: int


MACHINES: Final = {
    "x86_64": Machine(0xC000003E, 59, 322),
    "aarch64": Machine(0xC00000B7, 221, 281),
}


class Notification(NamedTuple):
    """A process that stands still in a system call until it is answered. Its arguments are addresses in its memory."""

    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]


def filter_program(machine: Machine) -> bytes:
    """The filter: every other architecture is refused (an i386 execve by `int 0x80` would pass unseen), x32 too."""
    steps = (
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_EQUAL, 0, 6, machine.audit),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_AT_LEAST, 4, 0, X32_BIT),
        (JUMP_EQUAL, 2, 0, machine.execve),
        (JUMP_EQUAL, 1, 0, machine.execveat),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ASK),
        (RETURN, 0, 0, REFUSE),
    )
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install() -> int:
    """Put this process and all that it starts under the filter for ever; the descriptor on which the kernel asks.

    Raises OSError: ENOSYS where the kernel or the machine is not known, EBUSY where another supervisor is there already.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, "the exec guard does not know this machine")
    set_no_new_privileges()
    try:
        return _install(machine, NEW_LISTENER | WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _install(machine, NEW_LISTENER)


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
    """Whether the process is still there, so that what was read of /proc was of it and not of a later one."""
    try:
        fcntl.ioctl(listener, STILL_WAITS, struct.pack("=Q", notification.id))
    except OSError:
        return False
    return True


def answer(listener: int, notification: Notification, error: int = 0) -> bool:
    """Let the call go on, or make it fail with `error`. False where the process is gone."""
    words = ANSWER.pack(notification.id, 0, -error, 0 if error else CONTINUE)
    try:
        fcntl.ioctl(listener, SEND, bytearray(words))
    except OSError as failure:
        if failure.errno != errno.ENOENT:
            raise
        return False
    return True


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _install(machine: Machine, flags: int) -> int:
    steps = filter_program(machine)
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.addressof(buffer))
    return call("seccomp", ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(flags), ctypes.byref(program))
