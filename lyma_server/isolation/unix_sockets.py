"""Sockets that have a place in the file system: whose they are, and which of them commands must not reach."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from socket import SOCK_DGRAM
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.isolation.confinement import contains

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

TABLE: Final = Path("/proc/net/unix")
FIELDS: Final = 8
"""Of a line of the table, if the socket has a name (proc(5)): address, count, protocol, flags, type, state, number, name."""

LISTENS: Final = 0x10000
"""Of the flags; the ends of connections that a listener took bear its name too."""

PROC: Final = Path("/proc")
SOCKET: Final = "socket:["


@frozen
class Named:
    """A socket by the name that was given to it, and the number by which its holders have it."""

    name: str
    number: str


@frozen
class Reach:
    """Which sockets commands could reach if nobody hid them: all but those below `hidden` folders, and all of the workspace.

    `let_in` are those that they may.
    """

    hidden: tuple[Path, ...]
    workspace: Path
    let_in: tuple[Path, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For the process that watches."""
        hidden, let_in = ([str(path) for path in paths] for paths in (self.hidden, self.let_in))
        return {"hidden": hidden, "workspace": str(self.workspace), "let_in": let_in}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Reach:
        """What `to_json` made."""
        return cls(tuple(map(Path, said["hidden"])), Path(said["workspace"]), tuple(map(Path, said["let_in"])))

    def within(self, path: Path) -> bool:
        """Whether commands could reach a socket there, and must not."""
        if path in self.let_in:
            return False
        return contains(self.workspace, path) or not any(contains(folder, path) for folder in self.hidden)


def named_sockets() -> frozenset[Named]:
    """Every socket with a name in the file system that takes what comes; empty where the system does not tell."""
    try:
        lines = TABLE.read_bytes().splitlines()[1:]
    except OSError:
        return frozenset()
    rows = (line.split(maxsplit=FIELDS - 1) for line in lines)
    return frozenset(Named(os.fsdecode(row[7]), row[6].decode()) for row in rows if len(row) == FIELDS and _takes(row))


def places(sockets: Iterable[Named]) -> set[Path]:
    """Where the sockets are now, by their real paths; a name that no longer is a socket's is left out."""
    found = set[Path]()
    for socket in sockets:
        names = [Path(socket.name)] if socket.name.startswith("/") else _from_folders_of_holders(socket)
        found.update(name.resolve() for name in names if is_socket(name))
    return found


def to_hide(sockets: Iterable[Named], reach: Reach) -> tuple[Path, ...]:
    """Where those are that commands could reach and must not."""
    return tuple(sorted(path for path in places(sockets) if reach.within(path)))


def held_by(processes: Iterable[int], numbers: Collection[str]) -> set[str]:
    """Which of the sockets with these numbers one of the processes has open."""
    return set[str]().union(*map(_held, processes)) & set(numbers)


def is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _takes(row: list[bytes]) -> bool:
    listens = int(row[3], 16) & LISTENS or int(row[4], 16) == SOCK_DGRAM
    return bool(listens) and not row[7].startswith(b"@")


def _from_folders_of_holders(socket: Named) -> Iterator[Path]:
    """A relative name started from the folder that the process was in; we can ask for the one it is in now."""
    for place in PROC.glob("[0-9]*"):
        if socket.number in _held(int(place.name)):
            with suppress(OSError):
                yield (place / "cwd").readlink() / socket.name


def _held(pid: int) -> set[str]:
    """The numbers of the sockets that a process has open, as far as we may look."""
    found = set[str]()
    with suppress(OSError), os.scandir(PROC / str(pid) / "fd") as entries:
        for entry in entries:
            with suppress(OSError):
                found.add(os.readlink(entry.path))  # noqa: PTH115 - of every descriptor of a process
    return {target[len(SOCKET) : -1] for target in found if target.startswith(SOCKET)}
