"""Trusted helpers: start a program, give it its input, take its output, and leave nothing behind.

With the part that runs the agent's own commands, this is the only door to other programs. A helper that takes too long,
says too much or is no longer wanted is ended with its whole process group: SIGTERM, then SIGKILL after half a second.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from attrs import frozen

from lyma_server.isolation.child import Child, start_child
from lyma_server.isolation.exchange import Exchange, program_name
from lyma_server.isolation.launch import (
    HelperFailed,
    Process,
    close_pipes,
    collect,
    has_ended,
    helper_environment,
    launch,
    limit_memory,
    signal_group,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Child",
    "HelperFailed",
    "HelperResult",
    "helper_environment",
    "run_helper",
    "run_helper_blocking",
    "start_child",
]

Folder: TypeAlias = str | os.PathLike[str]

OUTPUT_LIMIT = 8 << 20
POLL_S = 0.01
GRACE_POLLS = 50
"""Half a second between SIGTERM and SIGKILL."""


@frozen
class HelperResult:
    """`status` is the exit status, negative for a signal. A status other than 0 is the caller's to judge."""

    status: int
    stdout: bytes
    stderr: bytes


async def run_helper(  # noqa: PLR0913 - each by name
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Folder | None = None,
    timeout_s: float = 10,
    output_limit: int = OUTPUT_LIMIT,
) -> HelperResult:
    """Run a program to its end. `env` null means a small built environment; `output_limit` counts both outputs in bytes.

    Cancelling ends the program too. Raises HelperFailed where it is missing, too slow, or says too much.
    """
    process = launch(argv, env=env, cwd=cwd, stdin_pipe=bool(stdin))
    exchange = Exchange(process, stdin, output_limit)
    try:
        await _serve(exchange, time.monotonic() + timeout_s)
    except TimeoutError:
        await _ask_to_end(process)
        _raise_too_slow(process, timeout_s)
    except BaseException:
        await _ask_to_end(process)
        raise
    finally:
        exchange.close()
        status = collect(process)
        close_pipes(process)
    return HelperResult(status, *exchange.outputs())


def run_helper_blocking(  # noqa: PLR0913 - each by name
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Folder | None = None,
    timeout_s: float = 10,
    output_limit: int = OUTPUT_LIMIT,
    memory_limit: int | None = None,
) -> HelperResult:
    """The same as `run_helper` for code that has no event loop; it blocks the calling thread.

    `memory_limit` bounds the address space, in bytes, before the program is given its input.
    """
    process = launch(argv, env=env, cwd=cwd, stdin_pipe=bool(stdin))
    if memory_limit is not None:
        limit_memory(process, memory_limit)
    exchange = Exchange(process, stdin, output_limit)
    try:
        _serve_blocking(exchange, time.monotonic() + timeout_s)
    except TimeoutError:
        _ask_to_end_blocking(process)
        _raise_too_slow(process, timeout_s)
    except BaseException:
        _ask_to_end_blocking(process)
        raise
    finally:
        exchange.close()
        status = collect(process)
        close_pipes(process)
    return HelperResult(status, *exchange.outputs())


async def _serve(exchange: Exchange, deadline: float) -> None:
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()
    failures: list[HelperFailed] = []
    watched = exchange.reading | exchange.writing

    def forget(fds: frozenset[int]) -> None:
        for fd in fds:
            loop.remove_reader(fd)
            loop.remove_writer(fd)
        watched.difference_update(fds)

    def step(fd: int) -> None:
        try:
            exchange.step(fd)
        except HelperFailed as failure:
            failures.append(failure)
            forget(frozenset(watched))
        forget(frozenset(exchange.unwanted(watched)))
        woken.set()

    for fd in exchange.reading:
        loop.add_reader(fd, step, fd)
    for fd in exchange.writing:
        loop.add_writer(fd, step, fd)
    try:
        while not exchange.finished():
            await _wait(woken, exchange, deadline)
            if failures:
                raise failures[0]
    finally:
        forget(frozenset(watched))


async def _wait(woken: asyncio.Event, exchange: Exchange, deadline: float) -> None:
    """Until something happens. Raises TimeoutError at the deadline."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    woken.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(left if exchange.wakes else min(left, POLL_S)):
            await woken.wait()


def _serve_blocking(exchange: Exchange, deadline: float) -> None:
    with selectors.DefaultSelector() as selector:
        for fd in exchange.reading:
            selector.register(fd, selectors.EVENT_READ)
        for fd in exchange.writing:
            selector.register(fd, selectors.EVENT_WRITE)
        while not exchange.finished():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in selector.select(left if exchange.wakes else min(left, POLL_S)):
                exchange.step(key.fd)
            for fd in exchange.unwanted({key.fd for key in selector.get_map().values()}):
                selector.unregister(fd)


async def _ask_to_end(process: Process) -> None:
    signal_group(process, signal.SIGTERM)
    for _ in range(GRACE_POLLS):
        if has_ended(process):
            return
        await asyncio.sleep(POLL_S)


def _ask_to_end_blocking(process: Process) -> None:
    signal_group(process, signal.SIGTERM)
    for _ in range(GRACE_POLLS):
        if has_ended(process):
            return
        time.sleep(POLL_S)


def _raise_too_slow(process: Process, timeout_s: float) -> NoReturn:
    raise HelperFailed(
        f"{program_name(process)} gave no answer within {timeout_s:g} s and was ended.", reason="timeout"
    ) from None
