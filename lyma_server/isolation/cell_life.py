"""A cell that runs: what it says, how it ends, and that nothing of it is left then."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from attrs import frozen

from lyma_server.isolation import family
from lyma_server.isolation.cell_clock import LOOK_S, CellClock
from lyma_server.isolation.cell_mounts import WORK
from lyma_server.isolation.launch import HelperFailed, Process, close_pipes, collect, open_exit, signal_group

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

OUTPUT_LIMIT: Final = 1 << 20
"""Bytes on stdout and stderr together; whoever says more is ended."""
KEPT_OUTPUT: Final = 16 << 10
"""Bytes of the end of both that are kept, to say why it failed."""
CHUNK: Final = 1 << 16

START_S: Final = 10.0
END_S: Final = 5.0
"""How long the kernel may take to end what was killed; then bubblewrap itself is killed, and with it all the rest."""

Reason: TypeAlias = Literal["ended", "signal", "cpu", "files", "output", "stopped"]
SIGNALLED: Final = 128
"""A status above it tells of a signal, as in a shell."""


@frozen
class Ended:
    """How a cell ended: the `status` of its program, and the end of what that said.

    "ended" is by itself, "signal" what something inside or the kernel did to it, "cpu" its time, "files" that it made
    more than fit, "output" that it said more than it may, "stopped" that it was told to.
    """

    status: int
    reason: Reason
    output: str


class Cell:
    """One that runs. It belongs to the event loop in which it was started."""

    def __init__(self, process: Process, channel: socket.socket) -> None:
        channel.setblocking(False)
        self.channel = channel
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._first: int | None = None
        self._clock: CellClock | None = None
        self._reason: Reason | None = None
        self._output = bytearray()
        self._said = 0
        self._hear: Callable[[bytes], None] | None = None
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._loop.add_reader(pipe.fileno(), self._drain, pipe.fileno())
        self._exit = open_exit(process)
        if self._exit is not None:
            self._loop.add_reader(self._exit, self._outer_ended)

    async def find_first(self, info: int) -> None:
        """Take hold of the first process inside, of which bubblewrap tells on `info`. Closes `info`.

        Raises HelperFailed where this kernel has no means to hold a process.
        """
        try:
            if self._exit is None:
                raise HelperFailed("Compiled agents need Linux 5.3 or later.", reason="missing")
            async with asyncio.timeout(START_S):
                told = await self._read_all(info)
            with suppress(ValueError, KeyError, ProcessLookupError):
                first = json.loads(told)["child-pid"]
                self._hold(os.pidfd_open(first))
                self._clock = CellClock(first)
        finally:
            os.close(info)

    def _hold(self, first: int) -> None:
        if not self._ended.done():
            self._first = first
            return
        with suppress(ProcessLookupError):  # bubblewrap has ended in the meantime
            signal.pidfd_send_signal(first, signal.SIGKILL)
        os.close(first)

    def watch(self, cpu_s: float, scratch_bytes: int) -> None:
        """Hold it to what no limit of the kernel's does: the processor time of all processes together, and empty files."""
        if self._clock is None or self._ended.done():
            return
        if self._clock.seconds() > cpu_s:
            self.kill("cpu")
        elif self._clock.has_too_many_files(WORK, scratch_bytes):
            self.kill("files")
        else:
            self._loop.call_later(LOOK_S, self.watch, cpu_s, scratch_bytes)

    def listen(self, hear: Callable[[bytes], None]) -> int | None:
        """Hand what the program says on stdout to `hear`, in pieces, the last one empty; how much there is, is up to that.

        The descriptor of its stdin, where the plan asked for one.
        """
        self._hear = hear
        return self._process.stdin.fileno() if self._process.stdin is not None else None

    async def wait(self) -> Ended:
        """Wait until nothing of it is left. Cancelling the wait leaves it running."""
        return await asyncio.shield(self._ended)

    async def stop(self, grace_s: float = 0.5) -> Ended:
        """Give it so long to end by itself, then kill all of it. Any number of times; always waits for the end."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    return await self.wait()
        finally:
            self.kill("stopped")
            await self._finish()
        return self._ended.result()

    def kill(self, reason: Reason) -> None:
        """Kill all of it, at once; the end is not waited for."""
        if self._ended.done():
            return
        self._reason = self._reason or reason
        if self._first is None:  # bubblewrap last: what it has just made would wait for it for ever
            family.end(self._process.pid, signal.SIGKILL)
            signal_group(self._process, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def _finish(self) -> None:
        """Wait for the end, which the kernel owes to us, even if we are cancelled meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        deadline = self._loop.time() + END_S
        while not self._ended.done():
            try:
                async with asyncio.timeout_at(deadline):
                    await self.wait()
            except TimeoutError:
                self._close()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def _outer_ended(self) -> None:
        """Bubblewrap ends with the program; what that has left behind is killed by it, which may take a moment more."""
        if self._exit is not None:
            self._loop.remove_reader(self._exit)
        if self._first is None:
            self._close()
        else:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            self._loop.add_reader(self._first, self._close)

    def _close(self) -> None:
        """Collect it and let go of everything."""
        if self._ended.done():
            return
        for descriptor in (self._first, self._exit):
            if descriptor is not None:
                self._loop.remove_reader(descriptor)
                os.close(descriptor)
        self._first = self._exit = None
        status = collect(self._process)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                self._drain(pipe.fileno())
                self._loop.remove_reader(pipe.fileno())
        close_pipes(self._process)
        self._ended.set_result(Ended(status, self._reason or _reason(status), self._output.decode(errors="replace")))

    def _drain(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._loop.remove_reader(descriptor)
        if self._hear is not None and self._process.stdout and descriptor == self._process.stdout.fileno():
            self._hear(chunk)
            return
        self._said += len(chunk)
        self._output += chunk
        del self._output[:-KEPT_OUTPUT]
        if self._said > OUTPUT_LIMIT:
            self.kill("output")
            self._loop.remove_reader(descriptor)

    async def _read_all(self, descriptor: int) -> bytes:
        """All that is said on a pipe until its other end is closed."""
        os.set_blocking(descriptor, False)
        told = bytearray()
        while True:
            ready = self._loop.create_future()
            self._loop.add_reader(descriptor, _resolve, ready)
            try:
                await ready
            finally:
                self._loop.remove_reader(descriptor)
            chunk = os.read(descriptor, CHUNK)
            if not chunk:
                return bytes(told)
            told += chunk


def _reason(status: int) -> Reason:
    if status == SIGNALLED + signal.SIGXCPU:
        return "cpu"
    return "signal" if SIGNALLED < status <= SIGNALLED + signal.NSIG or status < 0 else "ended"


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
