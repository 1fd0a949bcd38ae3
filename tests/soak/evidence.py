"""What can be seen of a server that owes a reply: its threads and tasks, its processes, its log and the session's file."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.processes import cpu_ticks, family, words_of
from tests.soak.witness import ASK, ASK_THREADS, END

if TYPE_CHECKING:
    from tests.raw_client import RawClient

TESTIMONY_S = 5.0
LINES = 30
WIDTH = 400


def gather(client: RawClient, home: Path, session: str | None) -> dict[str, str]:
    """All of it for a person to read, each part by its name. Raises nothing: something else is wrong already."""
    pid = client.process.pid
    files = [path for path in home.glob(f"sessions/{session}.jsonl") if session]
    return {
        "load of the machine": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "threads and tasks": testimony(client),
        "processes": "\n".join(_process(each) for each in sorted(family(pid))),
        "log": _end_of(home / "log" / "server.log", f" {pid} "),
        **{f"session {path.stem}": _end_of(path) for path in files},
    }


def testimony(client: RawClient) -> str:
    """What the witness in it says; only the threads where no step of Python is taken any more."""
    start, deadline = len(client.errors), time.monotonic() + TESTIMONY_S
    for number in (ASK_THREADS, ASK):
        with suppress(ProcessLookupError):
            os.kill(client.process.pid, number)
    while END not in client.errors[start:] and time.monotonic() < deadline:
        time.sleep(0.01)
    said = bytes(client.errors[start:])
    return said.decode(errors="replace") + ("" if END in said else "(its event loop takes no step)")


def _process(pid: int) -> str:
    """Its state, where it sleeps in the kernel, the processor time it has had, and its command line."""
    state, place, ticks = "?", "?", 0
    with suppress(OSError, IndexError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        place = Path(f"/proc/{pid}/wchan").read_text()
        ticks = cpu_ticks(pid)
    return f"{pid} {state} {place} {ticks} {words_of(pid).replace(bytes(1), b' ').decode(errors='replace')[:WIDTH]}"


def _end_of(path: Path, mark: str = "") -> str:
    """Its last lines, of those that hold `mark`."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as problem:
        return str(problem)
    return "\n".join([line[:WIDTH] for line in lines if mark in line][-LINES:])
