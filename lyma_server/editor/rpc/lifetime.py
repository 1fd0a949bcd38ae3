"""When to end: no editor, no server.

The end of the input, the death of whoever started us, the death of the process that `initialize` names and a closed output
each end the process. Each is watched by a thread of its own, which sleeps in `poll` and costs nothing; a watch does not
depend on the event loop, so a loop that is stuck ends too.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S: Final = 1.2
"""From the first reason to end until the process is ended by force."""
_GLANCE_S: Final = 0.5
_LAST_S: Final = 0.1
"""The last act may need a lock that is held for ever; the end does not wait for it."""


class Lifetime:
    """Ends the process once, for the first reason that comes."""

    def __init__(self, on_end: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
        """`on_end` is told the reason in any thread and should end things cleanly within `patience_s`."""
        self._on_end = on_end
        self._patience_s = patience_s
        self._ending = threading.Event()
        self._watched: set[int] = set()
        self.exit_code = 1

    def end(self, reason: str) -> None:
        """Begin to end. The process is gone after the patience at the latest, with `exit_code`."""
        if self._ending.is_set():
            return
        self._ending.set()
        _start(self._end_by_force)
        self._on_end(reason)

    def watch_output(self, descriptor: int) -> None:
        """End when nobody can read what is written to `descriptor`."""
        _start(self._await_events, descriptor, 0, "the client closed our output")

    def watch_parent(self, parent: int) -> None:
        """End when `parent`, who started this process, is gone; at once if another stands in its place by now."""
        if parent > 0:
            self.watch_process(parent, "the process that started us is gone")
        if os.getppid() != parent:
            self.end("the process that started us is gone")

    def watch_process(self, process: int, reason: str) -> None:
        """End when `process` is gone. One that is not there to begin with lives in another namespace: it is not watched."""
        if process in self._watched or process <= 0 or process == os.getpid():
            return
        self._watched.add(process)
        if sys.platform == "linux":
            try:
                descriptor = os.pidfd_open(process)
            except OSError:
                return
            _start(self._await_events, descriptor, select.POLLIN, reason)
        elif _exists(process):
            _start(self._glance_at, process, reason)

    def _await_events(self, descriptor: int, events: int, reason: str) -> None:
        poll = select.poll()
        poll.register(descriptor, events)  # errors and hang-ups are always reported
        poll.poll()
        self.end(reason)

    def _glance_at(self, process: int, reason: str) -> None:
        while _exists(process):
            time.sleep(_GLANCE_S)
        self.end(reason)

    def _end_by_force(self) -> None:
        time.sleep(self._patience_s)
        last = _start(end_helpers)
        last.join(_LAST_S)
        os._exit(self.exit_code)


def end_helpers() -> None:
    """Kill whatever we have started, with all that it has started."""
    from lyma_server.isolation.launch import end_all

    end_all()


def _start(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
