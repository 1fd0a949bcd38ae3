"""The first process inside the sandbox of a session: it puts all that follows under the exec guard, and starts commands.

Standard library only, single-threaded, and short. In a PID namespace it is process 1, so that no command can signal it;
it may not be traced either, since it is not dumpable. Each command has a **minder**, a fork of this process that adopts
what the command leaves behind. So whatever a command started, however detached, is below its minder and can be found.

Over `orders` come commands to start: `{"id", "argv", "env", "cwd"}` with a descriptor for the output. On `reports` each
answer is one packet: `{"id", "failed"}` where it could not be started, `{"id", "status"}` when the command has ended, and
`{"id", "gone": true}` when nothing of it runs any more.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from lyma_server.isolation import frames, seccomp

SET_PARENT_DEATH_SIGNAL, SET_DUMPABLE, SET_NAME, SET_CHILD_SUBREAPER = 1, 4, 15, 36
NOT_STARTED: Final = 127
DESCRIPTORS: Final = 256
DEFAULT_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT)
"""Python ignores or handles these; a command begins with none of that."""


def main(words: list[str]) -> None:
    """`words` are the descriptors of `orders`, `reports` and of the channel to the guard."""
    orders, reports, channel = (_moved_down(int(word)) for word in words)
    control(SET_DUMPABLE, 0)
    _ask_guard(channel)
    keeper = Keeper(reports)
    signal.signal(signal.SIGCHLD, lambda *_: keeper.collect())
    with suppress(EOFError, ConnectionError):
        while True:
            order, descriptors = frames.receive(orders)
            keeper.start(order, descriptors[0], orders)


def _moved_down(descriptor: int) -> socket.socket:
    """The same socket under the lowest free number, so that all of ours lie below DESCRIPTORS."""
    low = socket.socket(fileno=os.dup(descriptor))
    os.close(descriptor)
    return low


def name_of(command: int) -> str:
    """The name of a command's minder in the process table."""
    return f"lyma-{command}"


def control(option: int, argument: int | bytes) -> None:
    """Call prctl; what it asks for is wanted, not needed."""
    ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _ask_guard(channel: socket.socket) -> None:
    """Install the filter, hand its listener over, and wait for the word that somebody listens."""
    try:
        listener = seccomp.install()
    except OSError as error:
        frames.send(channel, {"guard": errno.errorcode.get(error.errno or 0, "?")})
    else:
        frames.send(channel, {"guard": "on"}, (listener,))
        os.close(listener)
    frames.receive(channel)
    channel.close()


class Keeper:
    """The minders, by process number."""

    def __init__(self, reports: socket.socket) -> None:
        self._reports = reports
        self._minders: dict[int, int] = {}

    def start(self, order: dict[str, Any], output: int, orders: socket.socket) -> None:
        """Start one command. What goes wrong is reported."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        try:
            minder = os.fork()
            if minder == 0:
                orders.close()
                _mind(order, output, self._reports)
            self._minders[minder] = order["id"]
        except OSError as error:
            _report(self._reports, id=order["id"], failed=error.strerror, gone=True)
        finally:
            os.close(output)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

    def collect(self) -> None:
        """Take note of minders that have ended, and end what has lost its minder: nobody could find it later."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                command = self._minders.pop(pid, None)
                if command is not None:
                    code = os.waitstatus_to_exitcode(status)
                    _report(self._reports, id=command, gone=True, **({"status": code} if code else {}))
        for pid in _children():
            if pid not in self._minders:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _mind(order: dict[str, Any], output: int, reports: socket.socket) -> NoReturn:
    """In the minder: run the command, adopt what it leaves behind, and stay until nothing is left."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        control(SET_CHILD_SUBREAPER, 1)
        control(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        control(SET_NAME, name_of(order["id"]).encode())
        command = os.fork()
        if command == 0:
            _become(order, output)
        os.close(output)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.wait()
                if pid == command:
                    _report(reports, id=order["id"], status=os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _become(order: dict[str, Any], output: int) -> NoReturn:
    """In the command's own process: nothing inherited, a session and group of its own, and then the program."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, DESCRIPTORS)
        for each in DEFAULT_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        control(SET_DUMPABLE, 1)  # the guard reads the words of the next exec; there is no secret left in here
        os.chdir(order["cwd"])
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - the one way to become it
    except OSError as error:
        os.write(2, f"lyma: {order['argv'][0]} could not be started in {order['cwd']}: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _children() -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []


def _report(reports: socket.socket, **facts: object) -> None:
    with suppress(OSError):
        reports.send(json.dumps(facts).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
