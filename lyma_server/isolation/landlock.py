"""Landlock: a process gives up, for itself and all that it starts, every right to files that no rule grants.

Standard library only: the program that becomes a command uses it. Numbers are those of include/uapi/linux/landlock.h;
the kernel has had it since 5.13. A rule grants rights to a folder and all below; nothing can be taken out of it again.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from enum import IntFlag
from typing import TYPE_CHECKING, Final

from lyma_server.isolation.kernel import call

if TYPE_CHECKING:
    from collections.abc import Iterable


class Right(IntFlag):
    """What may be done with a file, or in a folder."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


class Scope(IntFlag):
    """What is kept within: processes can reach it only in those that were confined with them, or below."""

    ABSTRACT_SOCKETS = 1 << 0
    SIGNALS = 1 << 1


SINCE: Final = {Right.REFER: 2, Right.TRUNCATE: 3, Right.IOCTL_DEV: 5}
"""Which version of Landlock knows of a right; the others are as old as it."""

SCOPES_SINCE: Final = 6
TRUNCATE_SINCE: Final = 3

READ: Final = Right.EXECUTE | Right.READ_FILE | Right.READ_DIR
WRITE: Final = (
    Right.WRITE_FILE | Right.TRUNCATE | Right.REFER | Right.REMOVE_DIR | Right.REMOVE_FILE
    | Right.MAKE_DIR | Right.MAKE_REG | Right.MAKE_SOCK | Right.MAKE_FIFO | Right.MAKE_SYM
)  # fmt: skip
DEVICE: Final = Right.READ_FILE | Right.WRITE_FILE | Right.TRUNCATE | Right.IOCTL_DEV
OF_FILES: Final = Right.EXECUTE | Right.READ_FILE | Right.WRITE_FILE | Right.TRUNCATE | Right.IOCTL_DEV
"""What can be granted for a single file; the kernel refuses a rule with more."""

PATH_BENEATH: Final = 1
RULE: Final = struct.Struct("=Qi")


def handled_rights(abi: int) -> Right:
    """Every right that this version can withhold."""
    return Right(sum(right for right in Right if SINCE.get(right, 1) <= abi))


def handled_scopes(abi: int) -> Scope:
    """All that this version can keep within."""
    return Scope.ABSTRACT_SOCKETS | Scope.SIGNALS if abi >= SCOPES_SINCE else Scope(0)


def ruleset_attributes(rights: Right, scopes: Scope, abi: int) -> bytes:
    """The kernel's struct landlock_ruleset_attr, as long as this version knows it."""
    words = {1: (rights,), 4: (rights, 0), SCOPES_SINCE: (rights, 0, scopes)}
    known = words[max(version for version in words if version <= abi)]
    return struct.pack(f"={len(known)}Q", *known)


class Ruleset:
    """What is granted so far. Raises OSError where the kernel has no Landlock, as does each step."""

    def __init__(self, rights: Right, scopes: Scope, abi: int) -> None:
        self._rights = rights
        attributes = ruleset_attributes(rights, scopes, abi)
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        self._file = call("landlock_create_ruleset", buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))

    def grant(self, path: str, rights: Right) -> None:
        """Grant `rights` on what is at `path` now. A link is passed over: what it leads to has its own path."""
        file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            mode = os.fstat(file).st_mode
            known = rights & self._rights & (~Right(0) if stat.S_ISDIR(mode) else OF_FILES)
            if known and not stat.S_ISLNK(mode):
                self._add(file, known)
        finally:
            os.close(file)

    def grant_all(self, grants: Iterable[tuple[str, Right]]) -> None:
        """Grant each; what is gone by now, or may not be looked at, is granted nothing."""
        for path, rights in grants:
            try:
                self.grant(path, rights)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue

    def restrict_self(self) -> None:
        """From here on, and for ever, only what was granted is allowed. Needs no_new_privs."""
        call("landlock_restrict_self", ctypes.c_int(self._file), ctypes.c_uint(0))
        os.close(self._file)

    def _add(self, file: int, rights: Right) -> None:
        rule = RULE.pack(rights, file)
        buffer = ctypes.create_string_buffer(rule, len(rule))
        call(
            "landlock_add_rule", ctypes.c_int(self._file), ctypes.c_int(PATH_BENEATH), ctypes.byref(buffer),
            ctypes.c_uint(0),
        )  # fmt: skip
