"""The processes below another, however far down, and their end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import signal

PROC: Final = Path("/proc")


def parents() -> dict[int, int]:
    """The parent of every process that can be seen."""
    found = {}
    for name in os.listdir(PROC):  # noqa: PTH208 - names, not paths, of every process of the machine
        if name.isdecimal():
            with suppress(OSError, IndexError):
                found[int(name)] = int(_status(int(name))[1])
    return found


def descendants(ancestor: int) -> list[int]:
    """Every process below `ancestor`, which is not among them; the nearest first."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, waiting = list[int](), [ancestor]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def end(ancestor: int, number: signal.Signals) -> int:
    """Send a signal to everything below `ancestor`; how many there were. Dead ones that nobody has collected do not count.

    Raises ValueError for process 1 and for what is no process: below it is the whole machine.
    """
    if ancestor <= 1:
        raise ValueError(ancestor)
    living = [pid for pid in descendants(ancestor) if not is_dead(pid)]
    for pid in living:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(living)


def is_dead(pid: int) -> bool:
    """Whether it has ended, collected or not."""
    try:
        return _status(pid)[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def name_of(pid: int) -> str:
    """Its short name in the process table; empty where it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "comm").read_text(errors="replace").rstrip("\n")
    return ""


def ancestors(pid: int) -> list[int]:
    """The processes above it, the nearest first."""
    found: list[int] = []
    with suppress(OSError, IndexError):
        while pid > 1:
            pid = int(_status(pid)[1])
            found.append(pid)
    return found


def times(pid: int) -> tuple[int, int, int]:
    """Processor time in ticks, its own and that of the children that it has collected, and when it was started.

    Raises OSError or IndexError where it is gone.
    """
    fields = [int(each) for each in _status(pid)[11:20]]
    return fields[0] + fields[1], fields[2] + fields[3], fields[8]


def _status(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name: state, parent and so on (proc(5))."""
    return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
