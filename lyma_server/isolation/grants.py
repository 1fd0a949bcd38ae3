"""Which paths Landlock grants, decided on names alone. Standard library only.

A grant holds for all below and nothing can be taken out of it, so what lies above a hidden folder is granted nothing: its
other entries are, one by one. Hence a folder above Lyma's home cannot be listed, nothing can be made directly in it, and
what appears there later stays out of reach.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from lyma_server.isolation.landlock import DEVICE, READ, WRITE, Right

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT: Final = "/"
PRIVATE: Final = ("/dev", "/run", "/tmp")  # noqa: S108 - named to be hidden
"""Devices, sockets and other programs' temporary files: only what is named of them is granted."""

KERNEL: Final = ("/proc", "/sys")
"""Never writable: as root, a file in there runs programs outside."""

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
"""Terminals are not among them: through one of another program a command could speak to the person who approves."""

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108


class Files(NamedTuple):
    """What a confinement says of files, in words that JSON knows."""

    masked: tuple[str, ...]
    writable: tuple[str, ...]
    everywhere: bool
    read_only: tuple[str, ...]
    shown: tuple[str, ...]
    scratch: str


def grants(files: Files, entries: Callable[[str], Iterable[str]]) -> Iterator[tuple[str, Right]]:
    """Paths and rights. `entries` names what is in a folder."""
    for path in beside(ROOT, (*files.masked, *PRIVATE), entries):
        yield path, READ
    for folder in files.shown:
        for path in beside(folder, files.masked, entries):
            yield path, READ
    for name in DEVICES:
        yield f"/dev/{name}", DEVICE
    yield SHARED_MEMORY, READ | WRITE
    yield files.scratch, READ | WRITE
    closed = (*files.masked, *files.read_only)
    for folder in files.writable:
        for path in beside(folder, closed, entries):
            yield path, READ | WRITE
    if files.everywhere:
        for path in beside(ROOT, (*closed, *PRIVATE, *KERNEL), entries):
            yield path, READ | WRITE


def beside(folder: str, holes: tuple[str, ...], entries: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """The outermost paths in `folder` that neither are a hole nor hold one."""
    if not any(lies_in(hole, folder) for hole in holes):
        yield folder
    elif folder not in holes:
        for name in entries(folder):
            yield from beside(os.path.join(folder, name), holes, entries)  # noqa: PTH118 - names, thousands of them


def lies_in(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def entries_of(folder: str) -> list[str]:
    """What is in a folder; nothing where it may not be looked at, since then a command may not either."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths
    except OSError:
        return []
