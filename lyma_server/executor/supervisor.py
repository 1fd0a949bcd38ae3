"""The supervisor of a session's commands: one process, one thread, outside the sandbox.

It starts the sandbox with the keeper in it, answers for every program that is executed there, and ends commands when it
is asked to. It runs beside the server and not in it, because an answer must come within a fraction of a millisecond. It
keeps the user's own uid, and can be looked into like any program, or else it could not read what its children execute.
When the server is gone its socket closes, and when this process ends the sandbox ends with all that is in it.

Over `control` come `{"place", "sandbox", "keeper", "reach"}` once, with the two sockets for the keeper, and then `{"stop": id}`.
It answers `{"ready": guard}` or `{"failed": why}`, and tells `{"refused": …, "command": id}`.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, define, field

from lyma_server.executor.exec_judge import ExecJudge, Place
from lyma_server.executor.identity import Identities
from lyma_server.isolation import family, frames
from lyma_server.isolation.covering import Watch
from lyma_server.isolation.guard import Guard, Refusal
from lyma_server.isolation.keeper import name_of
from lyma_server.isolation.launch import HelperFailed, collect, launch, open_exit
from lyma_server.isolation.unix_sockets import Reach

if TYPE_CHECKING:
    from lyma_server.isolation.launch import Process

GRACE_S: Final = 0.5
"""Between SIGTERM and SIGKILL."""

RETRY_S: Final = 0.02
START_S: Final = 10
CREDENTIALS: Final = 12
"""Bytes of a struct ucred: process, user, group."""

MOST_TOLD: Final = 100
"""Refusals of one command that the server is told of."""


def main() -> None:
    """The one argument is the descriptor of `control`."""
    gc.freeze()
    gc.set_threshold(50_000)  # what is made for one question is free again without it
    control = socket.socket(fileno=os.dup(int(sys.argv[1])))
    os.close(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the server, which then asks us
    with suppress(EOFError, ConnectionError):
        supervisor = Supervisor(control, Identities())
        order, sockets = frames.receive(control)
        try:
            supervisor.open(order, tuple(sockets))
            supervisor.serve()
        except (HelperFailed, OSError, EOFError) as error:
            frames.send(control, {"failed": supervisor.why_failed(error)})
        finally:
            supervisor.close()


@define
class Supervisor:
    """Everything of one session. `stops` holds by command when it must be killed; `keeper` is its process number."""

    control: socket.socket
    identities: Identities
    stops: dict[int, float] = field(factory=dict)
    guard: Guard | None = None
    sandbox: Process | None = None
    keeper: int = 0
    watch: Watch | None = None
    told: Counter[int | None] = field(factory=Counter)

    def open(self, order: dict[str, Any], sockets: tuple[int, ...]) -> None:
        """Start the sandbox and take over its guard. Raises HelperFailed, OSError or EOFError where that fails."""
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ours.settimeout(START_S)
        inherited = (*sockets, theirs.fileno())
        words = [*order["sandbox"], *order["keeper"], *map(str, inherited)]
        self.sandbox = launch(words, env={}, cwd="/", stdin_pipe=False, pass_fds=inherited)
        for each in sockets:
            os.close(each)
        theirs.close()
        self.keeper, said, listeners = _hear_keeper(ours)
        if listeners:
            judge = ExecJudge(Place(**order["place"]), self.identities)
            self.guard = Guard(listeners[0], judge, self._tell_refusal)
        if order["reach"] is not None:
            self.watch = Watch(self.keeper, Reach.from_json(order["reach"]), sleepless=self.guard is None)
            self.watch.look()
        frames.send(ours, "go on")
        ours.close()
        frames.send(self.control, {"ready": said["guard"]})

    def serve(self) -> None:
        """Until the server or the sandbox is gone."""
        poll = select.epoll()
        poll.register(self.control, select.EPOLLIN)
        if self.guard is not None:
            poll.register(self.guard.listener, select.EPOLLIN)
        ended = None if self.sandbox is None else open_exit(self.sandbox)
        if ended is not None:
            poll.register(ended, select.EPOLLIN)
        while True:
            patience = self._patience()
            if patience is not None:
                select.select([poll.fileno()], [], [], patience)  # to the microsecond, unlike the next line
            ready = dict(poll.poll(None if patience is None else 0))
            if ended in ready:
                return
            self._watch_sockets(about_to_run=self.guard is not None and self.guard.listener in ready)
            if self.guard is not None:
                self._serve_guard(self.guard, ready.get(self.guard.listener, 0), poll)
            if self.control.fileno() in ready:
                order, _ = frames.receive(self.control)
                self._begin_stop(order["stop"])
            self._go_on_stopping()

    def close(self) -> None:
        """End all that is left."""
        if self.guard is not None:
            self.guard.close()
        if self.sandbox is not None:
            if self.keeper:
                family.end(self.keeper, signal.SIGKILL)
            collect(self.sandbox)

    def why_failed(self, error: BaseException) -> str:
        """What the sandbox says of its end, or else the error."""
        if self.sandbox is not None and self.sandbox.stderr is not None:
            collect(self.sandbox)
            said = self.sandbox.stderr.read(4096).decode(errors="replace").strip()
            if said:
                return said.splitlines()[-1]
        return str(error) or type(error).__name__

    def _patience(self) -> float | None:
        waits = [max(0.0, due - time.monotonic()) for due in self.stops.values()]
        looks = (each.due_in() for each in (self.guard, self.watch) if each is not None)
        return min([*waits, *(look for look in looks if look is not None)], default=None)

    def _watch_sockets(self, *, about_to_run: bool) -> None:
        """Before what is about to run can reach them."""
        if self.watch is not None:
            if about_to_run:
                self.watch.wake()
            self.watch.look_if_due()

    def _serve_guard(self, guard: Guard, events: int, poll: select.epoll) -> None:
        if events & select.EPOLLIN:
            guard.serve()
        elif events & select.EPOLLHUP:  # nobody is below the filter any more
            poll.unregister(guard.listener)
        guard.look_again()

    def _tell_refusal(self, pid: int, refusal: Refusal) -> None:
        """Before the process learns of it, so that the server knows before the command can end."""
        command = self._command_of(pid)
        self.told[command] += 1
        if self.told[command] <= MOST_TOLD:
            frames.send(self.control, {"refused": asdict(refusal), "command": command})

    def _command_of(self, pid: int) -> int | None:
        """The command that a process belongs to: its minder is the keeper's child above it."""
        above = [pid, *family.ancestors(pid)]
        if self.keeper not in above[1:]:
            return None
        minder = family.name_of(above[above.index(self.keeper) - 1])
        return next((int(number) for number in [minder.removeprefix(name_of(0)[:-1])] if number.isdecimal()), None)

    def _minder(self, command: int) -> int | None:
        children = (pid for pid, parent in family.parents().items() if parent == self.keeper)
        return next((pid for pid in children if family.name_of(pid) == name_of(command)), None)

    def _begin_stop(self, command: int) -> None:
        """It may only just be starting: then it is found when it is to be killed."""
        minder = self._minder(command)
        if minder is not None and command not in self.stops:
            family.end(minder, signal.SIGTERM)
        self.stops.setdefault(command, time.monotonic() + GRACE_S)

    def _go_on_stopping(self) -> None:
        """Kill what is due, again and again until nothing is left: what is killed may just have had children."""
        now = time.monotonic()
        for command, due in list(self.stops.items()):
            if due > now:
                continue
            minder = self._minder(command)
            if minder is None or not family.end(minder, signal.SIGKILL):
                del self.stops[command]
            else:
                self.stops[command] = now + RETRY_S


def _hear_keeper(channel: socket.socket) -> tuple[int, dict[str, Any], list[int]]:
    """The keeper's process number as we see it, what it says of the guard, and the listener if there is one."""
    size = socket.CMSG_SPACE(CREDENTIALS)
    _, sent, _, _ = channel.recvmsg(1, size, socket.MSG_PEEK)
    pids = [int.from_bytes(data[:4], sys.byteorder) for _, kind, data in sent if kind == socket.SCM_CREDENTIALS]
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    if not pids:
        raise EOFError
    said, listeners = frames.receive(channel)
    return pids[0], said, listeners


if __name__ == "__main__":
    main()
