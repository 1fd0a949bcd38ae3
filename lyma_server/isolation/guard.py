"""The exec guard: has what a process is about to execute judged, and lets it go on or not.

What it reads is what the kernel will read again a moment later; only another thread or process that shares the memory
could change it in between. Each allowed exec is therefore looked at once more when it has happened: the file that really
runs and its real words. Where they are others than those that were judged they are judged again, and what is forbidden is
ended. That a racing program may win before is known; confinement is what holds then.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from attrs import evolve, frozen

from lyma_server.isolation import seccomp
from lyma_server.isolation.exec_request import ExecRequest, HiddenProcess, head_of, read_requests
from lyma_server.isolation.sight import Sight, identity_of, link_target

if TYPE_CHECKING:
    from lyma_server.isolation.seccomp import Notification

FIRST_LOOK_S: Final = 0.0003
LOOK_FOR_S: Final = 0.5
"""How long to look for an exec to have happened before it is taken for one that failed."""

BEGINNING: Final = 1024
"""Bytes; more than what the kernel tells a program at its start (/proc/PID/auxv), among it addresses that each exec moves."""


@frozen
class Refusal:
    """Why something may not run: a rule's name, the part that it names, and two sentences."""

    rule: str
    part: str
    reason: str
    instead: str


UNREADABLE: Final = Refusal(
    "unreadable",
    "",
    "It was started by a program that keeps its memory from being read, so it could not be judged.",
    "Start it from a program that does not hide its memory.",
)

Judge: TypeAlias = Callable[[ExecRequest], Refusal | None]
"""None to let it run."""


class _Look(NamedTuple):
    process: int
    pid: int
    request: ExecRequest
    program: tuple[int, int]
    beginning: bytes
    due: float
    pause_s: float = FIRST_LOOK_S

    def later(self) -> _Look:
        """The next look, after a pause twice as long."""
        return self._replace(due=self.due + self.pause_s * 2, pause_s=self.pause_s * 2)


class Guard:
    """Answers for one listener. Whoever owns it waits until `listener` is readable and then calls `serve`."""

    def __init__(self, listener: int, judge: Judge, on_refusal: Callable[[int, Refusal], None]) -> None:
        self.listener = listener
        self._judge = judge
        self._on_refusal = on_refusal
        self._looks: deque[_Look] = deque()

    def due_in(self) -> float | None:
        """Seconds until `look_again` should be called; None where nothing is to be looked at."""
        return max(0.0, min(look.due for look in self._looks) - time.monotonic()) if self._looks else None

    def serve(self) -> None:
        """Answer one question. A judge that fails refuses."""
        notification = seccomp.receive(self.listener)
        if notification is None:
            return
        opened: list[int] = []
        try:
            requests = read_requests(notification, opened)
        except HiddenProcess:
            seccomp.answer(self.listener, notification, errno.EPERM)
            self._on_refusal(notification.pid, UNREADABLE)
        except OSError as error:
            seccomp.answer(self.listener, notification, error.errno or errno.EFAULT)
        except Exception:  # noqa: BLE001 - whatever was handed to the kernel, we go on and it does not run
            seccomp.answer(self.listener, notification, errno.EPERM)
        else:
            self._decide(notification, requests)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def look_again(self) -> None:
        """See what the allowed ones have become; end what is forbidden now."""
        now = time.monotonic()
        for _ in range(len(self._looks)):
            look = self._looks.popleft()
            if look.due > now:
                self._looks.append(look)
            elif self._goes_on(look):
                self._looks.append(look.later())
            else:
                os.close(look.process)

    def close(self) -> None:
        """Let go of everything; every exec that still waits fails."""
        while self._looks:
            os.close(self._looks.popleft().process)
        os.close(self.listener)

    def _decide(self, notification: Notification, requests: list[ExecRequest]) -> None:
        for request in requests:
            refusal = self._refusal(request)
            if refusal is not None:
                if seccomp.still_waits(self.listener, notification):
                    self._on_refusal(request.pid, refusal)
                seccomp.answer(self.listener, notification, errno.EPERM)
                return
        if not seccomp.still_waits(self.listener, notification):
            return
        with suppress(ProcessLookupError):
            self._looks.append(_look(requests[-1]))
        seccomp.answer(self.listener, notification)

    def _refusal(self, request: ExecRequest) -> Refusal | None:
        try:
            return self._judge(request)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the answer is no
            reason = f"It could not be judged ({type(error).__name__})."
            return Refusal("unreadable", request.path, reason, "Write it in a simpler form.")

    def _goes_on(self, look: _Look) -> bool:
        """Whether the exec has not happened yet. A process has no words for an instant in the middle of it."""
        waits = look.pause_s < LOOK_FOR_S
        if waits and _beginning(look.pid) == look.beginning:
            return not _has_ended(look.process)
        try:
            argv, program = _words(look.pid), os.stat(f"/proc/{look.pid}/exe")  # noqa: PTH116 - run at every exec
            if waits and not argv:
                return not _has_ended(look.process)
            if (identity_of(program), argv) != (look.program, look.request.argv):
                self._judge_again(look, argv)
        except OSError:
            return False
        return False

    def _judge_again(self, look: _Look, argv: tuple[str, ...]) -> None:
        """What runs is not what was judged."""
        with ExitStack() as stack:
            file = os.open(f"/proc/{look.pid}/exe", os.O_PATH | os.O_CLOEXEC)
            stack.callback(os.close, file)
            root = os.open(f"/proc/{look.pid}/root", os.O_PATH | os.O_CLOEXEC)
            stack.callback(os.close, root)
            path, sight, status = link_target(f"/proc/{look.pid}/exe"), Sight(look.pid, root), os.fstat(file)
            self._end_if_forbidden(
                look,
                ExecRequest(
                    look.pid, path, argv or ("",), look.request.cwd, file, status, sight, head_of(file, status)
                ),
            )

    def _end_if_forbidden(self, look: _Look, now: ExecRequest) -> None:
        refusal = self._refusal(now)
        if refusal is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(look.process, signal.SIGKILL)
        reason = f"{refusal.reason} It changed after it had been judged, so it was ended."
        self._on_refusal(now.pid, evolve(refusal, reason=reason))


def _look(request: ExecRequest) -> _Look:
    """Remember what is expected. An exec ends every other thread and takes over the number of the process."""
    pid = request.pid
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # a thread that does not lead its process
        pid = _leader_of(pid)
        process = os.pidfd_open(pid)
    return _Look(process, pid, request, request.identity, _beginning(pid), time.monotonic() + FIRST_LOOK_S)


def _words(pid: int) -> tuple[str, ...]:
    """The words of a running process."""
    with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as words:  # noqa: PTH123 - twice as fast, and run at every exec
        return tuple(os.fsdecode(word) for word in words.read().split(b"\0")[:-1])


def _beginning(pid: int) -> bytes:
    """What the kernel told a program at its start; the same until the next exec. Empty where it is gone."""
    try:
        file = os.open(f"/proc/{pid}/auxv", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, BEGINNING)
        finally:
            os.close(file)
    except OSError:
        return b""


def _leader_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123 - see above
        return next((int(line.split()[1]) for line in status if line.startswith("Tgid:")), thread)


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))
