"""The two seccomp filters of a cell, in which a compiled agent runs.

The outer one is loaded by bubblewrap just before it becomes the first program inside; it cannot forbid to execute, since
that is what bubblewrap does next. The inner one is loaded by that program, before it touches anything that is not ours,
and forbids to execute. Both only take away. Numbers are those of arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h, flags those of include/uapi/linux/sched.h and asm-generic/ioctls.h.
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
    NUMBER_AT,
    RETURN,
    Step,
    assemble,
    other_gates_shut,
)
from lyma_server.isolation.socket_filter import KIND_BITS, MASK, SECOND_ARGUMENT_AT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ORDER: Final = ("x86_64", "aarch64")
_ABSENT: Final = -1

NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bind": (49, 200),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fork": (57, _ABSENT),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, _ABSENT),
    "iopl": (172, _ABSENT),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "listen": (50, 201),
    "lsetxattr": (189, 6),
    "lookup_dcookie": (212, 18),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "modify_ldt": (154, _ABSENT),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "seccomp": (317, 277),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "uselib": (134, _ABSENT),
    "vfork": (58, _ABSENT),
    "vhangup": (153, 58),
}
"""Of the calls that are named here, on each machine of ORDER."""

ABSENT: Final = ("clone3", "io_setup", "io_uring_enter", "io_uring_register", "io_uring_setup")
"""Answered as if the kernel had no such call, so that programs take an older one, whose arguments a filter can see."""

BY_ARGUMENT: Final = ("clone", "ioctl", "socketpair")
"""Refused for some arguments only."""

OFTEN_NEEDED: Final = ("execve", "execveat", "fork", "seccomp", "vfork")
"""Allowed by the outer filter where the cell may hold several processes."""

FORBIDDEN: Final = tuple(name for name in NUMBERS if name not in {*ABSENT, *BY_ARGUMENT, *OFTEN_NEEDED})
"""By every cell: sockets, mounts, namespaces, other processes' memory, keys, kernel modules, clocks, and memory that no
limit counts (memfd_create, shmget, mq_open, and setxattr, for which a tmpfs takes more than its size)."""

JUMP_IF_ANY: Final = 0x45
NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET."""
PUSH_INPUT, CONSOLE = 0x5412, 0x541C
"""TIOCSTI and TIOCLINUX: to type for somebody else."""

REFUSE: Final = ERRNO | errno.EPERM
NO_SUCH_CALL: Final = ERRNO | errno.ENOSYS


def outer_filter(*, alone: bool) -> bytes:
    """What bubblewrap loads. `alone` forbids every further process and thread too. Raises OSError on an unknown machine."""
    names = (*FORBIDDEN, "fork", "vfork", "clone") if alone else FORBIDDEN
    return _filter(names, (() if alone else _clone(), _terminal(), _pairs()))


def inner_filter() -> bytes:
    """What the first program loads when it needs to execute nothing more. Raises OSError on an unknown machine."""
    return _filter(("execve", "execveat", "fork", "vfork", "clone", "seccomp"), ())


def _filter(names: Iterable[str], by_argument: Iterable[Iterable[tuple[str, Step]]]) -> bytes:
    """Refuse `names`, then ask what `by_argument` says; each of these begins with the call's number at hand."""
    refused = [("", (JUMP_EQUAL, _number(name), "refuse", None)) for name in names if _number(name) != _ABSENT]
    steps: list[tuple[str, Step]] = [*other_gates_shut(MACHINES[platform.machine()]), *refused]
    steps += [("", (JUMP_EQUAL, _number(name), "absent", None)) for name in ABSENT]
    for part in by_argument:
        steps += part
    return assemble(
        [
            *steps,
            ("allow", (RETURN, ALLOW, None, None)),
            ("absent", (RETURN, NO_SUCH_CALL, None, None)),
            ("refuse", (RETURN, REFUSE, None, None)),
        ]
    )


def _clone() -> list[tuple[str, Step]]:
    return [
        ("", (JUMP_EQUAL, _number("clone"), None, "not clone")),
        ("", (LOAD, FIRST_ARGUMENT_AT, None, None)),
        ("", (JUMP_IF_ANY, NEW_NAMESPACES, "refuse", "allow")),
        ("not clone", (LOAD, NUMBER_AT, None, None)),
    ]


def _terminal() -> list[tuple[str, Step]]:
    return [
        ("", (JUMP_EQUAL, _number("ioctl"), None, "not ioctl")),
        ("", (LOAD, SECOND_ARGUMENT_AT, None, None)),
        ("", (JUMP_EQUAL, PUSH_INPUT, "refuse", None)),
        ("", (JUMP_EQUAL, CONSOLE, "refuse", "allow")),
        ("not ioctl", (LOAD, NUMBER_AT, None, None)),
    ]


def _pairs() -> list[tuple[str, Step]]:
    """Programs talk to themselves by connected pairs; those of datagrams could be sent elsewhere."""
    return [
        ("", (JUMP_EQUAL, _number("socketpair"), None, "allow")),
        ("", (LOAD, FIRST_ARGUMENT_AT, None, None)),
        ("", (JUMP_EQUAL, socket.AF_UNIX, None, "refuse")),
        ("", (LOAD, SECOND_ARGUMENT_AT, None, None)),
        ("", (MASK, KIND_BITS, None, None)),
        ("", (JUMP_EQUAL, socket.SOCK_STREAM, "allow", None)),
        ("", (JUMP_EQUAL, socket.SOCK_SEQPACKET, "allow", "refuse")),
    ]


def _number(name: str) -> int:
    if platform.machine() not in ORDER:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return NUMBERS[name][ORDER.index(platform.machine())]
