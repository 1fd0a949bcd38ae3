"""Processes as /proc shows them from outside: who descends from whom, what each was given, and where each listens."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from attrs import frozen

from tests.guards import LISTENING, descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIMIT_S = 2.0
"""How long anything of ours may outlive its reason to live."""

UNCONNECTED = "07"
POLL_S = 0.002
SOCKETS_POLL_S = 0.02
"""Who listens does so for longer than a helper lives, and to look costs more."""

NOT_YET_A_PROGRAM_S = 2.0
"""Between fork and exec a child still shows what its parent was given. Longer than this is no moment between."""


@frozen
class Given:
    """What a process was started with, the words and the variables separated by NUL."""

    pid: int
    parent: int
    words: bytes
    environment: bytes


def children(pid: int) -> list[int]:
    """The processes that `pid` started and that are not collected yet."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> set[int]:
    """All that `pid` started, and what these started."""
    found: set[int] = set()
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        if child not in found:
            found.add(child)
            waiting += children(child)
    return found


def family(pid: int) -> set[int]:
    """A process and its descendants."""
    return {pid, *descendants(pid)}


def words_of(pid: int) -> bytes:
    """The command line; nothing for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def given_to(pid: int) -> Given | None:
    """What `pid` was started with; null where it is gone or is becoming another program at this moment."""
    words = words_of(pid)
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
    return Given(pid, parent, words, environment) if words and words == words_of(pid) else None


def is_gone(pid: int) -> bool:
    """Whether it has ended; one that nobody has collected yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until_gone(pids: Iterable[int]) -> float:
    """Seconds until all are gone."""
    start = time.monotonic()
    while left := [pid for pid in pids if not is_gone(pid)]:
        assert time.monotonic() - start < 10, f"still there: {[(pid, words_of(pid)) for pid in left]}"
        time.sleep(0.01)
    return time.monotonic() - start


def wait_for(condition: Callable[[], object], within_s: float = 20) -> None:
    """Wait until something is so that nobody tells us of."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.005)


def find(within: int, program: bytes) -> list[int]:
    """The descendants of `within` whose command line holds `program`."""
    return [pid for pid in descendants(within) if program in words_of(pid) and not is_gone(pid)]


def cpu_ticks(pid: int) -> int:
    """How long it has been computing, in the kernel's ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def inet_listeners(pids: Iterable[int]) -> list[tuple[int, str]]:
    """Who of `pids` takes what comes over a network, loopback included: TCP that listens, UDP that is bound."""
    sockets = {}
    for table, state in (("tcp", LISTENING), ("tcp6", LISTENING), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)):
        with suppress(FileNotFoundError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == state:
                    sockets[f"socket:[{fields[9]}]"] = f"{table} {fields[1]}"
    return [(pid, sockets[name]) for pid in pids for name in descriptors(pid) & sockets.keys()]


class Watch:
    """Keeps an eye, a few hundred times a second, on all that is started meanwhile below this process.

    `given` is what each process was started with, `files` every content that a file in one of `folders` has had, and with
    `sockets` set `listeners` is whoever took what came over a network.
    """

    def __init__(self, *folders: Path, sockets: bool = False) -> None:
        self.given: set[Given] = set()
        self.files: dict[Path, list[bytes]] = {}
        self.listeners: set[tuple[bytes, str]] = set()
        self.rounds = 0
        self._folders, self._sockets = folders, sockets
        self._known: dict[Path, tuple[int, int, int]] = {}
        self._first_seen: dict[int, float] = {}
        self._before = descendants(os.getpid())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look_at_files()

    def _run(self) -> None:
        while not self._stop.wait(SOCKETS_POLL_S if self._sockets else POLL_S):
            self._look_at_processes()
            if self.rounds % 5 == 0:
                self._look_at_files()
            self.rounds += 1

    def _look_at_processes(self) -> None:
        pids = descendants(os.getpid()) - self._before
        for pid in pids:
            given = given_to(pid)
            if given is not None and self._is_program(given):
                self.given.add(given)
        if self._sockets:
            self.listeners |= {(words_of(pid), address) for pid, address in inet_listeners(pids)}

    def _is_program(self, given: Given) -> bool:
        """Whether it shows what it was itself given, and not what its parent was."""
        first = self._first_seen.setdefault(given.pid, time.monotonic())
        return given.words != words_of(given.parent) or time.monotonic() - first > NOT_YET_A_PROGRAM_S

    def _look_at_files(self) -> None:
        for folder in self._folders:
            for path in folder.rglob("*"):
                with suppress(OSError):
                    facts = path.lstat()
                    mark = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                    if path.is_file() and self._known.get(path) != mark:
                        self._keep(path, path.read_bytes())
                        self._known[path] = mark

    def _keep(self, path: Path, content: bytes) -> None:
        """Add a content; one that only goes on from the last takes its place."""
        contents = self.files.setdefault(path, [])
        if contents and content.startswith(contents[-1]):
            contents.pop()
        contents.append(content)
