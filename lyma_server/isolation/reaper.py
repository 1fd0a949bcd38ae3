"""Stands in for a PID namespace where there is none: whoever is started below ends with it, however detached.

Two processes, both outside the confinement of what they keep. The outer one is the face: to kill it is to end all. The inner
one adopts every process whose parent has ended, and is told by the kernel when the outer one dies, even by SIGKILL. Where
Landlock keeps signals within (version 6), no command can end the inner one. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from lyma_server.isolation import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    Become = Callable[[], NoReturn]

ENDINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FIRST_INHERITED: Final = 3
BY_SIGNAL: Final = 128


def keep(scratch: str, become: Become) -> NoReturn:
    """Run `become` in a process below, and end as it ends, after all that it left behind.

    `scratch` is a folder that is made before, for this user alone, and removed after.
    """
    outer = os.getpid()
    kernel.control(kernel.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    inner = os.fork()
    if inner == 0:
        _guard(lambda: _adopt(outer, scratch, become))
    _guard(lambda: _stand_for(inner))


def _guard(run: Callable[[], int]) -> NoReturn:
    """A fork must never return into its parent's code."""
    status = BY_SIGNAL - 1
    try:
        status = run()
    except OSError as error:
        os.write(2, f"lyma: commands could not be kept together: {error.strerror}\n".encode())
    finally:
        os._exit(status)


def _stand_for(inner: int) -> int:
    """Pass on that we are asked to end; what we hold open of the command's is let go of."""
    _close_inherited()
    for number in ENDINGS:
        signal.signal(number, lambda *_: os.kill(inner, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    return _status(os.waitpid(inner, 0)[1])


def _adopt(outer: int, scratch: str, become: Become) -> int:
    os.setsid()
    kernel.control(kernel.SET_CHILD_SUBREAPER, 1)
    kernel.control(kernel.SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != outer:
        return BY_SIGNAL + signal.SIGTERM
    Path(scratch).mkdir(mode=0o700)
    try:
        first = os.fork()
        if first == 0:
            _guard(lambda: _begin(become))
        _close_inherited()
        return _wait(first)
    finally:
        _end_all()
        shutil.rmtree(scratch, ignore_errors=True)


def _begin(become: Become) -> NoReturn:
    kernel.control(kernel.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # Python's own ways are not the command's
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    become()


def _wait(first: int) -> int:
    """Until the first process ends, or we are asked to end. Collects the others meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    while True:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if ended[0] == first:
                    return _status(ended[1])
        number = signal.sigwait((signal.SIGCHLD, *ENDINGS))
        if number != signal.SIGCHLD:
            return BY_SIGNAL + number


def _end_all() -> None:
    """Kill what is below us until nothing is; whoever has just been started is found the next time."""
    with suppress(ChildProcessError):
        while True:
            for pid in _below(os.getpid()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _below(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names of processes
        if name.isdecimal():
            with suppress(OSError, IndexError):
                stat = Path("/proc", name, "stat").read_bytes()
                children.setdefault(int(stat.rpartition(b")")[2].split()[1]), []).append(int(name))
    found = list(children.get(ancestor, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def _close_inherited() -> None:
    os.closerange(FIRST_INHERITED, os.sysconf("SC_OPEN_MAX"))


def _status(status: int) -> int:
    """As a shell tells it."""
    code = os.waitstatus_to_exitcode(status)
    return BY_SIGNAL - code if code < 0 else code
