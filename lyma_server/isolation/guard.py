"""The exec guard: reads what a process is about to execute, has it judged, and lets it go on or not.

What it reads is what the kernel will read again a moment later; only another thread or process that shares the memory
could change it in between. Each allowed exec is therefore looked at once more when it has happened, and ended if it
became something that is forbidden. That a racing program may win before is known; confinement is what holds then.
"""

from __future__ import annotations

import errno
import os
import platform
import select
import signal
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve, frozen

from lyma_server.isolation import exec_filter
from lyma_server.isolation.memory import open_as_seen_by, read_string, read_strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.isolation.exec_filter import Notification

AT_FDCWD: Final = -100
AT_EMPTY_PATH: Final = 0x1000
FIRST_LOOK_S: Final = 0.001
LOOK_FOR_S: Final = 1.0
"""How long an exec may take to happen before it is taken for one that failed. The time between looks doubles."""


@frozen
class ExecRequest:
    """What is about to run. `file` is an open descriptor (O_PATH) of the very file, valid while it is judged."""

    pid: int
    path: str
    argv: tuple[str, ...]
    cwd: str
    file: int


Judge: TypeAlias = "Callable[[ExecRequest], str | None]"
"""None to let it run, or else the reason why not."""


@frozen
class _Look:
    process: int
    request: ExecRequest
    before: tuple[str, ...]
    due: float
    pause_s: float = FIRST_LOOK_S
    looked_s: float = 0.0

    def later(self) -> _Look:
        """The next look."""
        return evolve(
            self, due=self.due + self.pause_s, pause_s=self.pause_s * 2, looked_s=self.looked_s + self.pause_s
        )


class Guard:
    """Answers for one listener. Whoever owns it waits until `listener` is readable and then calls `serve`."""

    def __init__(self, listener: int, judge: Judge, on_refusal: Callable[[ExecRequest, str], None]) -> None:
        self.listener = listener
        self._judge = judge
        self._on_refusal = on_refusal
        self._looks: deque[_Look] = deque()

    def look_due_in(self) -> float | None:
        """Seconds until `look_again` should be called; None where nothing is to be looked at."""
        return max(0.0, min(look.due for look in self._looks) - time.monotonic()) if self._looks else None

    def serve(self) -> None:
        """Answer one question. A judge that fails refuses."""
        notification = exec_filter.receive(self.listener)
        if notification is None:
            return
        try:
            request = read_request(notification)
        except OSError as error:
            exec_filter.answer(self.listener, notification, error.errno or errno.EFAULT)
            return
        try:
            self._decide(notification, request)
        finally:
            os.close(request.file)

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

    def _goes_on(self, look: _Look) -> bool:
        """Whether the exec has not happened yet. A process has no words for an instant in the middle of it."""
        words = command_line(look.request.pid)
        if words in ((), look.before):
            return look.looked_s < LOOK_FOR_S and not _has_ended(look.process)
        if words != look.request.argv:
            self._end_if_forbidden(look, words)
        return False

    def close(self) -> None:
        """Let go of everything; every exec that still waits fails."""
        while self._looks:
            os.close(self._looks.popleft().process)
        os.close(self.listener)

    def _decide(self, notification: Notification, request: ExecRequest) -> None:
        reason = self._reason(request)
        if not exec_filter.still_waits(self.listener, notification):
            return
        if reason is not None:
            exec_filter.answer(self.listener, notification, errno.EPERM)
            self._on_refusal(request, reason)
            return
        with suppress(ProcessLookupError):
            process, before = os.pidfd_open(request.pid), command_line(request.pid)
            self._looks.append(_Look(process, request, before, time.monotonic() + FIRST_LOOK_S))
        exec_filter.answer(self.listener, notification)

    def _reason(self, request: ExecRequest) -> str | None:
        try:
            return self._judge(request)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the answer is no
            return f"it could not be judged ({type(error).__name__})"

    def _end_if_forbidden(self, look: _Look, now: tuple[str, ...]) -> None:
        file = os.open(os.devnull, os.O_PATH)
        try:
            reason = self._reason(evolve(look.request, argv=now, file=file))
        finally:
            os.close(file)
        if reason is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(look.process, signal.SIGKILL)
            self._on_refusal(look.request, f"{reason}; its words changed after they had been judged")


def read_request(notification: Notification) -> ExecRequest:
    """What the waiting process asks for. Raises OSError as the call itself would, such as ENOENT for no such file.

    A search along PATH asks once for each folder; those that do not hold the program end here.
    """
    pid, call = notification.pid, _call(notification)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        path = read_string(memory, call.path_at)
        file = _open_target(pid, path, call)
        try:
            argv = read_strings(memory, call.argv_at)
            named = path or str(Path(call.base(pid)).readlink())
            return ExecRequest(pid, named, argv, str(Path(f"/proc/{pid}/cwd").readlink()), file)
        except BaseException:
            os.close(file)
            raise
    finally:
        os.close(memory)


def command_line(pid: int) -> tuple[str, ...]:
    """The words of a running process; empty where it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words.split(b"\0")[:-1])


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))


@frozen
class _Call:
    """The arguments of execve or execveat."""

    path_at: int
    argv_at: int
    folder: int = AT_FDCWD
    flags: int = 0

    def base(self, pid: int) -> str:
        """Where /proc has the folder that a relative path starts from."""
        return f"/proc/{pid}/cwd" if self.folder == AT_FDCWD else f"/proc/{pid}/fd/{self.folder}"


def _call(notification: Notification) -> _Call:
    first, second, third, _, fifth = notification.arguments[:5]
    if notification.number == exec_filter.MACHINES[platform.machine()].execve:
        return _Call(first, second)
    return _Call(second, third, _signed(first), fifth)


def _open_target(pid: int, path: str, call: _Call) -> int:
    if path:
        return open_as_seen_by(pid, path, call.base(pid))
    if call.flags & AT_EMPTY_PATH:
        return os.open(call.base(pid), os.O_PATH | os.O_CLOEXEC)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _signed(argument: int) -> int:
    """A C int that came in a register of 64 bits."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low
