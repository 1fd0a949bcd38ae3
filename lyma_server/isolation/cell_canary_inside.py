"""What the canary tries from inside a cell: everything here must fail. Run by the cell's first program, as the runner is.

On the channel comes JSON, one line: `proof` is what to say where all failed, `files` lie outside, `sockets` and `ports` are
outside where somebody listens, `variables` are all that an environment inside may hold. What was possible is said instead, as a clause.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lyma_server.isolation.canary_inside import connect, works

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANNEL: Final = 3
MOST_PROCESSES: Final = 2
"""The first of the namespace, and this one."""

OLDEST: Final = (3, 9)
"""Of Python; the runner speaks no older one."""

READ_ONLY: Final = ("/", "/usr", "/in", "/lyma", "/agent", "/dev", "/dev/shm", "/proc/sys", "/proc/1")  # noqa: S108
DEEDS: Final[tuple[tuple[str, Callable[..., object], tuple[object, ...]], ...]] = (
    ("another process can be started", os.fork, ()),
    ("memory that no limit counts can be had", os.memfd_create, ("canary",)),
    ("a socket can be made", socket.socket, (socket.AF_INET, socket.SOCK_STREAM)),
    ("the user can be changed", os.setuid, (0,)),
    ("the root can be changed", os.chroot, ("/work",)),
    ("programs can be executed", os.execv, ("/usr/bin/true", ["true"])),
)


def complaints(trial: dict[str, Any]) -> Iterator[str]:
    """What could be done, as clauses."""
    if sys.version_info < OLDEST:
        yield f"/usr/bin/python3 is older than {OLDEST[0]}.{OLDEST[1]}"
    yield from _within_sight(trial)
    yield from _ways_out(trial)
    for what, deed, arguments in DEEDS:
        if works(deed, *arguments):
            yield what


def _within_sight(trial: dict[str, Any]) -> Iterator[str]:
    for path in trial["files"]:
        if works(Path(path).read_bytes):
            yield "files outside can be read"
    for folder in READ_ONLY:
        if works(Path(folder, "canary").touch):
            yield f"{folder} can be written"
    if len([entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]) > MOST_PROCESSES:
        yield "processes outside can be seen"
    for folder in ("/proc/sys", "/proc/1"):
        if any(Path(folder).iterdir()):
            yield f"{folder} is there"
    if foreign := variables() - set(trial["variables"]):
        yield f"the variable {min(foreign)} can be read"


def variables() -> set[str]:
    """The names of all variables of all processes that can be looked into."""
    found: set[str] = set()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found |= {word.partition(b"=")[0].decode(errors="replace") for word in place.read_bytes().split(b"\0")[:-1]}
    return found


def _ways_out(trial: dict[str, Any]) -> Iterator[str]:
    for address in trial["sockets"]:
        if works(connect, address):
            yield f"the socket {address} can be reached"
    for port in trial["ports"]:
        if works(_connect_to, port):
            yield "the network can be reached"


def _connect_to(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        pass


def main() -> None:
    with os.fdopen(CHANNEL, "r+b", buffering=0) as channel:
        trial = json.loads(channel.readline())
        channel.write(next(complaints(trial), trial["proof"]).encode())
