"""System calls that Python has no name for. Each raises OSError as the kernel says it."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from typing import Final

PR_SET_NO_NEW_PRIVS: Final = 38

SECCOMP_GET_ACTION_AVAIL: Final = 2
SECCOMP_RET_USER_NOTIF: Final = 0x7FC00000
LANDLOCK_CREATE_RULESET_VERSION: Final = 1

NUMBERS: Final = {
    "x86_64": {"seccomp": 317, "openat2": 437, "landlock_create_ruleset": 444},
    "aarch64": {"seccomp": 277, "openat2": 437, "landlock_create_ruleset": 444},
}
"""From the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h)."""


def call(name: str, *arguments: object) -> int:
    """Make a system call by its name. Raises OSError, ENOSYS where this machine is not known."""
    number = NUMBERS.get(platform.machine(), {}).get(name) if sys.platform == "linux" else None
    if number is None:
        raise OSError(38, os.strerror(38))
    return _checked(_libc().syscall(ctypes.c_long(number), *arguments))


def set_no_new_privileges() -> None:
    """From here on no program that we start gains rights by being setuid."""
    _checked(_libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


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
