"""What a process asks the kernel to execute, read while it waits: the file as it sees it, the words, the folder."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from lyma_server.isolation import seccomp
from lyma_server.isolation.memory import read_string, read_strings
from lyma_server.isolation.programs import NotAProgram, interpreter, read_head
from lyma_server.isolation.sight import DELETED, Sight, folder_of, follow_own, identity_of, link_target, own_link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.isolation.seccomp import Notification

AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
EXECVE: Final = frozenset(machine.execve for machine in seccomp.MACHINES.values())
"""Its number; no architecture gives it to execveat, and the filter asks about nothing else."""

SCRIPTS_IN_SCRIPTS: Final = 5
"""The kernel follows so many interpreters that are scripts themselves."""


class HiddenProcess(PermissionError):
    """A process that made itself unreadable (PR_SET_DUMPABLE), where we have no right to look all the same."""


class ExecRequest(NamedTuple):
    """What is about to run. `pid` is the thread that asks; `path` is as it names the program, `cwd` its folder.

    `file` (O_PATH) is the very file, with its `status`, and `sight` what paths mean to the process; both are open while it is
    judged. `head` are the first bytes of the file, null where they cannot be read.
    """

    pid: int
    path: str
    argv: tuple[str, ...]
    cwd: str
    file: int
    status: os.stat_result
    sight: Sight
    head: bytes | None

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return identity_of(self.status)

    def open(self, path: str) -> int:
        """Open (O_PATH) what `path` means to the process. Raises OSError where there is no such file."""
        return self.sight.open(path if path.startswith("/") else f"{self.cwd}/{path}")


def read_requests(notification: Notification, opened: list[int]) -> list[ExecRequest]:
    """What the waiting process asks for: the program, and after it the interpreter where that is a script.

    The descriptors are added to `opened`, to be closed by whoever asks. Raises HiddenProcess, and OSError as the call itself would, such as ENOENT for no such
    file: a search along PATH asks once for each folder, and those that do not hold the program end here.
    """
    pid, call = notification.pid, _call(notification)
    try:
        memory = _open(f"/proc/{pid}/mem", os.O_RDONLY, opened)
        sight = Sight(pid, _open(f"/proc/{pid}/root", os.O_PATH, opened))
        cwd = folder_of(pid)
    except PermissionError:
        raise HiddenProcess from None
    path = read_string(memory, call.path_at)
    own = own_link(path)
    if own:
        file = _open(f"/proc/{pid}/{own}", os.O_PATH, opened)
    elif path:
        path = follow_own(pid, path)
        file = _open_seen(sight, path, call.folder_of(pid, cwd), call.base(pid), opened)
    elif call.flags & AT_EMPTY_PATH:
        file = _open(call.base(pid), os.O_PATH, opened)
        path = link_target(call.base(pid))
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    argv = tuple(follow_own(pid, word) for word in read_strings(memory, call.argv_at)) or ("",)
    status = os.fstat(file)
    first = ExecRequest(pid, path, argv, cwd, file, status, sight, head_of(file, status))
    return [first, *_interpreters(first, opened)]


def head_of(file: int, status: os.stat_result) -> bytes | None:
    """The first bytes of a program, null where they may not be read. Raises OSError (EACCES) for what is no program."""
    try:
        return read_head(file, status)
    except NotAProgram:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
    except OSError:
        return None


def _interpreters(request: ExecRequest, opened: list[int]) -> Iterator[ExecRequest]:
    """The kernel executes the interpreter of a script without asking again."""
    for _ in range(SCRIPTS_IN_SCRIPTS):
        words = interpreter(request.head or b"")
        if not words:
            return
        base = f"/proc/{request.pid}/cwd"
        file = _open_seen(request.sight, words[0], request.cwd, base, opened)
        argv, status = (*words, request.path, *request.argv[1:]), os.fstat(file)
        head = head_of(file, status)
        request = ExecRequest(request.pid, words[0], argv, request.cwd, file, status, request.sight, head)
        yield request


class _Call(NamedTuple):
    """The arguments of execve or execveat."""

    path_at: int
    argv_at: int
    folder: int = AT_FDCWD
    flags: int = 0

    def base(self, pid: int) -> str:
        """Where /proc has the folder that a relative path starts from."""
        return f"/proc/{pid}/cwd" if self.folder == AT_FDCWD else f"/proc/{pid}/fd/{self.folder}"

    def folder_of(self, pid: int, cwd: str) -> str:
        return cwd if self.folder == AT_FDCWD else link_target(self.base(pid))


def _call(notification: Notification) -> _Call:
    first, second, third, _, fifth = notification.arguments[:5]
    if notification.number in EXECVE:
        return _Call(first, second)
    return _Call(second, third, _signed(first), fifth)


def _open_seen(sight: Sight, path: str, folder: str, base: str, opened: list[int]) -> int:
    """Open (O_PATH) what `path` means to the process: below its root, links included."""
    if path.startswith("/"):
        return _owned(sight.open(path), opened)
    if folder.startswith("/") and not folder.endswith(DELETED):
        return _owned(sight.open(f"{folder}/{path}"), opened)
    return _open(f"{base}/{path}", os.O_PATH, opened)


def _open(path: str, flags: int, opened: list[int]) -> int:
    return _owned(os.open(path, flags | os.O_CLOEXEC), opened)


def _owned(descriptor: int, opened: list[int]) -> int:
    opened.append(descriptor)
    return descriptor


def _signed(argument: int) -> int:
    """A C int that came in a register of 64 bits."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low
