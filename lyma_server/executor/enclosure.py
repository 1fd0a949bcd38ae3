"""The sandbox of one session, seen from the server: it is asked to start commands, and tells what becomes of them."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, define, field

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import frames
from lyma_server.isolation.guard import Refusal
from lyma_server.isolation.process import start_child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lyma_server.executor.exec_judge import Place
    from lyma_server.isolation.process import Child
    from lyma_server.isolation.unix_sockets import Reach

ROOT: Final = Path(__file__).resolve().parents[2]
BOOT: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from lyma_server.{module} import main; main({words})"
SUPERVISOR: Final = ("-I", "-c", BOOT.format(module="executor.supervisor", words=""))
KEEPER: Final = ("-I", "-S", "-B", "-c", BOOT.format(module="isolation.keeper", words="sys.argv[1:]"))

START_S: Final = 15
END_S: Final = 1.0
PIPE_SIZE: Final = 1 << 20
SET_PIPE_SIZE: Final = 1031
"""F_SETPIPE_SZ of Linux: a command that says much waits less often."""

PACKET: Final = 1 << 16


@define(eq=False)
class Process:
    """A command that was started. `output` is the descriptor to read from; it is closed by who reads it.

    `status` is its exit status, negative for a signal; `gone` comes when nothing of it runs any more.
    """

    number: int
    output: int
    status: asyncio.Future[int]
    gone: asyncio.Future[None]
    refusals: list[Refusal] = field(factory=list)


class Enclosure:
    """Made by `new_enclosure`. `guard` is "on", or the name of the error that keeps it off."""

    def __init__(self, supervisor: Child, control: socket.socket) -> None:
        self.guard = ""
        self.closed = False
        self._supervisor = supervisor
        self._control = control
        self._orders, self._its_orders = socket.socketpair()
        self._reports, self._its_reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.settimeout(START_S)
        self._loop = asyncio.get_running_loop()
        self._splitter = frames.Splitter()
        self._processes: dict[int, Process] = {}
        self._ready: asyncio.Future[str] = self._loop.create_future()
        self._sending = asyncio.Lock()
        self._numbers = 0
        self._loop.add_reader(control, self._hear_supervisor)
        self._loop.add_reader(self._reports, self._hear_keeper)

    async def open(self, confined: Sequence[str], place: Place, reach: Reach | None = None) -> None:
        """Start the sandbox. `confined` are the words that start a program inside, `reach` says which sockets must be hidden
        that appear later. Raises MaskUnavailable where it does not come up.
        """
        keeper = [sys.executable, *KEEPER, str(ROOT)]
        watched = None if reach is None else reach.to_json()
        order = {"place": asdict(place), "sandbox": list(confined), "keeper": keeper, "reach": watched}
        with self._its_orders, self._its_reports, suppress(OSError):  # where it is gone, that is heard below
            frames.send(self._control, order, (self._its_orders.fileno(), self._its_reports.fileno()))
        try:
            async with asyncio.timeout(START_S):
                self.guard = await self._ready
        except TimeoutError:
            raise MaskUnavailable(f"The sandbox for commands did not start within {START_S} s; try again.") from None

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Process:
        """Start a program that was judged before. Raises OSError where the sandbox is gone."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(reading, SET_PIPE_SIZE, PIPE_SIZE)
        os.set_blocking(reading, False)
        self._numbers += 1
        process = Process(self._numbers, reading, self._loop.create_future(), self._loop.create_future())
        self._processes[process.number] = process
        order = {"id": process.number, "argv": list(argv), "env": dict(env), "cwd": cwd}
        sending = asyncio.ensure_future(self._send(order, writing))
        try:
            await asyncio.shield(sending)
        except BaseException:
            await asyncio.wait({sending})
            os.close(reading)
            self.stop(process)  # it may have begun
            raise
        return process

    async def _send(self, order: dict[str, Any], output: int) -> None:
        try:
            async with self._sending:
                await asyncio.to_thread(frames.send, self._orders, order, (output,))
        finally:
            os.close(output)

    def stop(self, process: Process) -> None:
        """Ask for its end with all that it started: SIGTERM, then SIGKILL after half a second."""
        if not process.gone.done() and not self.closed:
            with suppress(OSError):
                frames.send(self._control, {"stop": process.number})

    async def close(self) -> None:
        """End everything in it. Calling it again is harmless."""
        if not self.closed:
            self._over()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._supervisor.wait()
        await self._supervisor.stop()

    def _hear_supervisor(self) -> None:
        try:
            piece = self._control.recv(PACKET)
        except OSError:
            piece = b""
        for message in self._splitter.feed(piece):
            self._heed(message)
        if not piece:
            self._over()

    def _heed(self, message: dict[str, Any]) -> None:
        if "ready" in message and not self._ready.done():
            self._ready.set_result(message["ready"])
        elif "failed" in message and not self._ready.done():
            self._ready.set_exception(_unavailable(message["failed"]))
        elif "refused" in message:
            refusal = Refusal(**message["refused"])
            named = self._processes.get(message["command"] or 0)
            for process in [named] if named is not None else list(self._processes.values()):
                process.refusals.append(refusal)

    def _hear_keeper(self) -> None:
        try:
            packet = self._reports.recv(PACKET)
        except OSError:
            packet = b""
        if not packet and not self._ready.done():  # why it did not start is still to be told by the supervisor
            self._loop.remove_reader(self._reports)
            return
        if not packet:
            self._over()
            return
        message = json.loads(packet)
        process = self._processes.get(message["id"])
        if process is None:
            return
        if "status" in message or "failed" in message:
            self._catch_up()
            _settle(process.status, message.get("status", 126))
        if "gone" in message:
            self._end(process, -9)

    def _catch_up(self) -> None:
        """What the guard refused was told before the command could end, so it is heard before the end is told."""
        with suppress(OSError):
            for message in self._splitter.feed(self._control.recv(PACKET, socket.MSG_DONTWAIT)):
                self._heed(message)

    def _end(self, process: Process, status: int) -> None:
        self._processes.pop(process.number, None)
        _settle(process.status, status)
        _settle(process.gone, None)

    def _over(self) -> None:
        """The sandbox is gone, or must go now."""
        if self.closed:
            return
        self.closed = True
        if not self._ready.done():
            said = self._supervisor.stderr.strip().splitlines()[-1:] or ["it ended at once"]
            self._ready.set_exception(_unavailable(said[0]))
            self._ready.exception()
        for channel in (self._control, self._reports):
            self._loop.remove_reader(channel)
        for channel in (self._control, self._orders, self._reports, self._its_orders, self._its_reports):
            channel.close()
        for process in list(self._processes.values()):
            self._end(process, -9)


def new_enclosure() -> Enclosure:
    """Start the supervisor; the sandbox comes with `open`. Raises HelperFailed."""
    control, its_control = socket.socketpair()
    with its_control:
        words = [sys.executable, *SUPERVISOR, str(ROOT), str(its_control.fileno())]
        try:
            child = start_child(words, env={}, cwd="/", stdin_pipe=False, pass_fds=[its_control.fileno()])
        except BaseException:
            control.close()
            raise
    return Enclosure(child, control)


def _settle(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _unavailable(reason: str) -> MaskUnavailable:
    return MaskUnavailable(
        f"The sandbox for commands could not be started, so none runs ({reason}); `lyma doctor` says how to mend it.",
        remedy="Run `lyma doctor`.",
    )
