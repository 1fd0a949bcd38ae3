"""System calls that Python has no name for. Each raises OSError as the kernel says it."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from typing import Final

SET_PARENT_DEATH_SIGNAL, DROP_FROM_BOUNDS, SET_CHILD_SUBREAPER = 1, 24, 36
SET_NO_NEW_PRIVILEGES, AMBIENT_CAPABILITIES, CLEAR_ALL = 38, 47, 4
"""Options of prctl (include/uapi/linux/prctl.h)."""

CAPABILITY_VERSION: Final = 0x20080522
LAST_CAPABILITY: Final = 63

SECCOMP_GET_ACTION_AVAIL: Final = 2
SECCOMP_RET_USER_NOTIF: Final = 0x7FC00000
LANDLOCK_CREATE_RULESET_VERSION: Final = 1

NUMBERS: Final = {
    "x86_64": {"capset": 126, "seccomp": 317},
    "aarch64": {"capset": 91, "seccomp": 277},
}
EVERYWHERE: Final = {
    "openat2": 437,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
"""From the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h)."""


def call(name: str, *arguments: object) -> int:
    """Make a system call by its name. Raises OSError, ENOSYS where this machine is not known."""
    return _checked(_libc().syscall(_number(name), *arguments))


def libc(name: str, *arguments: object) -> int:
    """Call a function of the C library that sets errno."""
    return _checked(_libc()[name](*arguments))


def control(option: int, argument: int, more: int = 0) -> int:
    """Call prctl."""
    return _checked(_libc().prctl(ctypes.c_int(option), *map(ctypes.c_ulong, (argument, more, 0, 0))))


def set_no_new_privileges() -> None:
    """From here on no program that we start gains rights by being setuid."""
    control(SET_NO_NEW_PRIVILEGES, 1)


def keep_capabilities(kept: frozenset[int]) -> None:
    """Give up every capability but these, for us and all that we start. Needs nothing where there are none."""
    with suppress(OSError):  # where it ends: at the kernel's last one, or for a user who has none to give up
        for capability in range(LAST_CAPABILITY + 1):
            if capability not in kept:
                control(DROP_FROM_BOUNDS, capability)
    control(AMBIENT_CAPABILITIES, CLEAR_ALL)
    bits = sum(1 << capability for capability in kept)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    call("capset", ctypes.byref(head), ctypes.byref(sets))


def landlock_abi() -> int:
    """The version of Landlock here; 0 for none."""
    try:
        return call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint(LANDLOCK_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def has_exec_notification() -> bool:
    """Whether seccomp can ask a supervisor about a system call (Linux 5.0)."""
    action = ctypes.c_uint32(SECCOMP_RET_USER_NOTIF)
    try:
        return call("seccomp", ctypes.c_uint(SECCOMP_GET_ACTION_AVAIL), ctypes.c_uint(0), ctypes.byref(action)) == 0
    except OSError:
        return False


@cache
def _number(name: str) -> ctypes.c_long:
    here = NUMBERS.get(platform.machine()) if sys.platform == "linux" else None
    number = (here | EVERYWHERE).get(name) if here else None
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return ctypes.c_long(number)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
