"""What a path means to another process: below its own root, with its own folder and descriptors behind the links of /proc."""

from __future__ import annotations

import ctypes
import errno
import os
import posixpath
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from lyma_server.isolation.kernel import call

if TYPE_CHECKING:
    from collections.abc import Callable

DELETED: Final = " (deleted)"
"""What the kernel adds to the path of a file that is gone."""

RESOLVE_IN_ROOT: Final = 0x10
NOWHERE: Final = (-1, -1)
"""Device and inode of no file."""

MOST_LINKS: Final = 40
"""The kernel follows so many (path_resolution(7))."""

_OWN_LINK = re.compile(r"/+(?:proc/+(?:thread-)?self(?:/+task/+\d+)?/+(cwd|root|exe|fd/+\d+)|dev/+(fd/+\d+))(?=/|$)")
"""After an exec a process has one thread, so what `task` names is itself."""
_OWN_FOLDERS = ("/proc/self/", "/proc/thread-self/")


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = ctypes.byref(_How(os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_IN_ROOT))
_HOW_SIZE = ctypes.c_size_t(ctypes.sizeof(_How))
"""Made once: the kernel only reads them, and they are handed over at every exec."""


def link_target(path: str) -> str:
    """Where a link of /proc points, as text."""
    return os.readlink(path)  # noqa: PTH115 - three times as fast, and run at every exec


def folder_of(pid: int) -> str:
    """The folder of a process, below its own root."""
    return _below_root(pid, "cwd")


def own_link(path: str) -> str | None:
    """Which link in its own folder of /proc `path` is to a process, null where it is none."""
    own = _OWN_LINK.match(path)
    return (own[1] or own[2]) if own and own.end() == len(path) else None


def follow_own(pid: int, path: str) -> str:
    """`path` where it starts with a link of /proc to the process itself, which would lead us to ourselves."""
    own = _OWN_LINK.match(path)
    if own is None:
        return path
    try:
        target = _below_root(pid, own[1] or own[2])
    except OSError:
        return path
    return target.rstrip("/") + path[own.end() :] if target.startswith("/") else path


class _Reached(NamedTuple):
    """How far a path leads: `real` exists, `rest` of it does not, and `onward` is where a link leads that nobody followed.

    `identity` is device and inode of `real`.
    """

    real: str
    rest: str
    onward: str | None
    identity: tuple[int, int]


class Sight(NamedTuple):
    """Of the process `pid`, whose root the descriptor `root` is.

    `known` names a folder by device and inode: a process that may mount can show it to itself under another name.
    """

    pid: int
    root: int
    known: Callable[[tuple[int, int]], str | None] | None = None

    def open(self, path: str) -> int:
        """Open (O_PATH) what an absolute `path` names, links included. Raises OSError as that process would get it."""
        return call("openat2", ctypes.c_int(self.root), ctypes.c_char_p(os.fsencode(path)), _HOW, _HOW_SIZE)

    def real_path(self, path: str) -> str:
        """The absolute `path` without links, as far as it exists.

        The kernel follows no link of /proc for us that leads out of a root (openat2(2)), so those are followed by name.
        Raises OSError (ELOOP) for a circle.
        """
        for _ in range(MOST_LINKS):
            reached = self._reach(follow_own(self.pid, path))
            if reached.onward is None:
                return self._as_known(reached)
            path = reached.onward
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _as_known(self, reached: _Reached) -> str:
        """The path below the innermost known folder on its way, by the name by which that is known."""
        path = posixpath.normpath(reached.real.rstrip("/") + reached.rest)
        if self.known is None:
            return path
        if "/.." in reached.rest:  # it leads back up
            return self._below_known(path, path, self.known)
        known = self.known(reached.identity)
        if known is not None:
            return known.rstrip("/") + path[len(reached.real.rstrip("/")) :]
        return self._below_known(path, reached.real.rpartition("/")[0], self.known)

    def _below_known(self, path: str, place: str, known_at: Callable[[tuple[int, int]], str | None]) -> str:
        """`path`, renamed at `place` or the innermost folder around it that is known."""
        while place not in ("", "/"):
            known = known_at(self._identity_at(place))
            if known is not None:
                return known.rstrip("/") + path[len(place) :] or "/"
            place = place.rpartition("/")[0]
        return path

    def _identity_at(self, place: str) -> tuple[int, int]:
        try:
            found = self.open(place)
        except (OSError, ValueError):
            return NOWHERE
        try:
            return identity_of(os.fstat(found))
        finally:
            os.close(found)

    def _reach(self, path: str) -> _Reached:
        """How far `path` can be followed."""
        rest = ""
        while True:
            try:
                found = self.open(path or "/")
            except (OSError, ValueError):
                if path in ("", "/"):
                    return _Reached("", rest, None, NOWHERE)
                path, _, name = path.rpartition("/")
                rest = f"/{name}{rest}"
                continue
            try:
                real = link_target(f"/proc/self/fd/{found}").removesuffix(DELETED)
                onward = self._onward(found, real, rest) if rest else None
                return _Reached(real, rest, onward, identity_of(os.fstat(found)))
            finally:
                os.close(found)

    def _onward(self, folder: int, real: str, rest: str) -> str | None:
        _, name, *others = rest.split("/")
        after = "".join(f"/{other}" for other in others)
        try:
            target = os.readlink(name, dir_fd=folder)
        except (OSError, ValueError):
            own = real + rest
            return own if own.startswith(_OWN_FOLDERS) and follow_own(self.pid, own) != own else None
        if target.startswith("/"):
            return target.removesuffix(DELETED).rstrip("/") + after
        return None if ":[" in target else f"{real}/{target}{after}"


def identity_of(status: os.stat_result) -> tuple[int, int]:
    """Device and inode of a file."""
    return status.st_dev, status.st_ino


def _below_root(pid: int, link: str) -> str:
    """Where a link in the folder of a process in /proc leads, below that process's own root."""
    target, root = link_target(f"/proc/{pid}/{link}"), link_target(f"/proc/{pid}/root")
    inside = root != "/" and (target == root or target.startswith(root + "/"))
    return (target[len(root) :] or "/") if inside else target
