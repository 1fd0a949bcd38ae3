"""Hides sockets from a sandbox that runs already: a device that swallows all is put over them, in its mount namespace alone.

A socket of another program may appear, or be made anew, after the sandbox began. Who made the sandbox may still change its
mounts: as root, or because the user namespace that owns them is ours.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.isolation import kernel, unix_sockets
from lyma_server.isolation.family import descendants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.isolation.unix_sockets import Named, Reach

OWNER_OF_NAMESPACE: Final = 0xB701
"""NS_GET_USERNS (ioctl_nsfs(2))."""

BIND: Final = 0x1000
COVER: Final = b"/dev/null"
PERIOD_S: Final = 0.5
FRESH_S: Final = 0.05
"""How old a look may be when a program starts; between programs it is PERIOD_S."""

NOT_COVERED: Final = 1


class Watch:
    """Sees which sockets have appeared, and hides them. `first` is the first process inside; all below it are the sandbox's.

    Whoever owns it calls `look_if_due` when `due_in` says so, and `wake` when something is about to run. While nothing runs
    it sleeps, unless `sleepless`, for where nobody would wake it.
    """

    def __init__(self, first: int, reach: Reach, *, sleepless: bool) -> None:
        self._first, self._reach, self._sleepless = first, reach, sleepless
        self._known: frozenset[Named] = frozenset()
        self._looked = 0.0
        self._due: float | None = 0.0

    def due_in(self) -> float | None:
        """Seconds until the next look; null while asleep."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def wake(self) -> None:
        """Something is about to run: look before it does, unless we just have."""
        soon = self._looked + FRESH_S
        self._due = soon if self._due is None else min(self._due, soon)

    def look_if_due(self) -> None:
        """Raises OSError where a socket could not be hidden."""
        if self._due is None or self._due > time.monotonic():
            return
        self.look()
        self._looked = time.monotonic()
        self._due = self._looked + PERIOD_S if self._sleepless or _has_children(self._first) else None

    def look(self) -> tuple[Path, ...]:
        """Hide what is new and not of the sandbox itself; where it is. Raises OSError where that fails.

        A glance takes a fraction of a millisecond while nothing is new.
        """
        now = unix_sockets.named_sockets()
        new, self._known = now - self._known, now
        if not new:
            return ()
        own = unix_sockets.held_by((self._first, *descendants(self._first)), {socket.number for socket in new})
        lasting = new & unix_sockets.named_sockets()  # one of ours that was closed meanwhile has no holder either
        found = unix_sockets.to_hide((socket for socket in lasting if socket.number not in own), self._reach)
        if found:
            cover(self._first, found)
        return found


def cover(inside: int, places: Iterable[Path]) -> None:
    """Put the cover over each place that is a socket to the process `inside`. Raises OSError where one stays open.

    A fork does it, since a process cannot come back out of a user namespace. We have one thread, as it must.
    """
    child = os.fork()
    if child == 0:
        status = NOT_COVERED
        try:
            _enter(inside)
            for place in places:
                _cover(place)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise OSError(
            os.waitstatus_to_exitcode(status), "a socket of another program could not be hidden from commands"
        )


def _enter(inside: int) -> None:
    """Into the mount namespace, by way of the user namespace that owns it if that is not our own."""
    mounts = os.open(f"/proc/{inside}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(mounts, OWNER_OF_NAMESPACE)
    if not os.path.samestat(os.fstat(owner), Path("/proc/self/ns/user").stat()):
        kernel.libc("setns", owner, 0)
    kernel.libc("setns", mounts, 0)


def _cover(place: Path) -> None:
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISSOCK(mode):
        kernel.libc("mount", COVER, os.fsencode(place), None, ctypes.c_ulong(BIND), None)


def _has_children(pid: int) -> bool:
    with suppress(OSError):
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_bytes())
    return True
