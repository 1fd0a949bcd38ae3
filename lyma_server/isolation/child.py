"""A long-lived trusted program that we talk to, such as the embedded model's server."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from lyma_server.isolation.exchange import CHUNK
from lyma_server.isolation.launch import (
    Process,
    close_pipes,
    collect,
    has_ended,
    launch,
    open_exit,
    signal_group,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

GRACE_S = 0.5
POLL_S = 0.01
KEPT_STDERR = 16 << 10
"""How many bytes of the end of a child's stderr are kept, to say why it failed."""

LINE_LIMIT = 1 << 20


def start_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdin_pipe: bool = True,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a program that stays; needs a running event loop. Its stdin is a pipe that closes with us, or /dev/null.

    It also ends with the thread that starts it. `env` null means a small built environment. The caller must `stop` it.
    Raises HelperFailed where there is no such program.
    """
    return Child(launch(argv, env=env, cwd=cwd, stdin_pipe=stdin_pipe, pass_fds=pass_fds))


class Child:
    """A running program. It is collected as soon as it ends, and what is left of its group ends with it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._stderr = bytearray()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        if process.stderr is not None:
            self._loop.add_reader(process.stderr.fileno(), self._read_stderr)
        self._exit = open_exit(process)
        if self._exit is not None:
            self._loop.add_reader(self._exit, self._collect)
        else:
            self._poll()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def stderr(self) -> str:
        """The end of what it has said on stderr."""
        self._read_stderr()
        return self._stderr.decode(errors="replace")

    async def write(self, data: bytes) -> None:
        """Send bytes to its stdin. Raises BrokenPipeError when it no longer reads."""
        rest = memoryview(data)
        while rest:
            pipe = self._process.stdin
            if pipe is None or pipe.closed:
                raise BrokenPipeError
            try:
                rest = rest[os.write(pipe.fileno(), rest[:CHUNK]) :]
            except BlockingIOError:
                await self._until_ready(pipe.fileno(), write=True)

    async def lines(self) -> AsyncGenerator[bytes]:
        """What it says on stdout, line by line without the line end. A line over 1 MiB comes in pieces."""
        rest = b""
        while (pipe := self._process.stdout) is not None and not pipe.closed:
            try:
                chunk = os.read(pipe.fileno(), CHUNK)
            except BlockingIOError:
                await self._until_ready(pipe.fileno())
                continue
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line
            if rest and (not chunk or len(rest) > LINE_LIMIT):
                yield rest
                rest = b""
            if not chunk:
                return

    async def wait(self) -> int:
        """Wait for its end and return its status. Cancelling the wait leaves it running."""
        return await asyncio.shield(self._ended)

    async def stop(self) -> int:
        """End it and its group: SIGTERM, then SIGKILL after half a second. Calling it again is harmless."""
        try:
            signal_group(self._process, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await self.wait()
        finally:
            self._collect()
            self._close()
        return self._ended.result()

    async def _until_ready(self, fd: int, *, write: bool = False) -> None:
        ready = self._waiting[fd] = self._loop.create_future()
        watch = self._loop.add_writer if write else self._loop.add_reader
        watch(fd, _resolve, ready)
        try:
            await ready
        finally:
            if self._waiting.pop(fd, None) is not None:
                self._unwatch(fd)

    def _unwatch(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    def _read_stderr(self) -> None:
        pipe = self._process.stderr
        if pipe is None or pipe.closed:
            return
        try:
            chunk = os.read(pipe.fileno(), CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._unwatch(pipe.fileno())
            pipe.close()
        self._stderr += chunk
        del self._stderr[:-KEPT_STDERR]

    def _poll(self) -> None:
        if self._ended.done():
            return
        if has_ended(self._process):
            self._collect()
        else:
            self._loop.call_later(POLL_S, self._poll)

    def _collect(self) -> None:
        """It has ended, or must now."""
        if self._ended.done():
            return
        if self._exit is not None:
            self._loop.remove_reader(self._exit)
            os.close(self._exit)
        self._ended.set_result(collect(self._process))

    def _close(self) -> None:
        """Let go of the pipes, and of those who wait for them."""
        for fd, ready in list(self._waiting.items()):
            self._waiting.pop(fd)
            self._unwatch(fd)
            _resolve(ready)
        stderr = self._process.stderr
        if stderr is not None and not stderr.closed:
            self._read_stderr()
        if stderr is not None and not stderr.closed:
            self._unwatch(stderr.fileno())
        close_pipes(self._process)


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
