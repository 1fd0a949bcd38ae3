"""Ends what a Lyma that was killed has left of its cells, and of the sandboxes of its commands.

Bubblewrap makes the first process of each and then lets it go on; killed in between, with its parent, it leaves one that
waits for ever. That has run nothing and can do nothing, but it is there. Standard library only.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from lyma_server.isolation.cell_marks import BUBBLEWRAP, ENTER_INSIDE, FIRST_USER, OUR_WORD, SLOTS

PROC: Final = Path("/proc")

TIMES: Final = 5
PAUSE_S: Final = 0.2
"""Bubblewrap ends a moment after the Lyma that it was started by."""


def main() -> None:
    """Sweep until all that ends by itself has had its time."""
    for _ in range(TIMES):
        sweep()
        time.sleep(PAUSE_S)


def sweep() -> list[int]:
    """Kill first processes whose bubblewrap is gone; their numbers."""
    ended = []
    for name in os.listdir(PROC):  # noqa: PTH208 - names, not paths, of every process of the machine
        with suppress(OSError, ValueError, KeyError):
            if name.isdecimal() and _is_abandoned(int(name)):
                os.kill(int(name), signal.SIGKILL)
                ended.append(int(name))
    return ended


def _is_abandoned(pid: int) -> bool:
    words = _words(pid)
    is_cell = ENTER_INSIDE.encode() in words
    if not is_cell and not _is_of_commands(words):
        return False
    facts = _facts(pid)
    namespaces = facts["NSpid"]
    is_first = len(namespaces) > 1 and namespaces[-1] == "1"
    user = int(facts["Uid"][0])
    return is_first and _is_ours(user, is_cell=is_cell) and _words(int(facts["PPid"][0])) != words


def _is_of_commands(words: list[bytes]) -> bool:
    """Bubblewrap still: what it becomes later has other words."""
    return os.path.basename(words[0]) == BUBBLEWRAP.encode() and any(OUR_WORD.encode() in word for word in words)  # noqa: PTH119 - bytes


def _is_ours(user: int, *, is_cell: bool) -> bool:
    if is_cell and os.geteuid() == 0:
        return FIRST_USER <= user < FIRST_USER + SLOTS
    return user == os.geteuid()


def _words(pid: int) -> list[bytes]:
    return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")


def _facts(pid: int) -> dict[str, list[str]]:
    """The fields of /proc/PID/status (proc(5))."""
    lines = (PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
