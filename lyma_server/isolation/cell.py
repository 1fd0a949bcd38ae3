"""Starts cells: a cell is the place in which a compiled agent runs, with its own namespaces, filters and limits.

Bubblewrap stays outside and is our child; it ends with the *thread* that started it. So one thread starts all of them, and
lasts as long as we do. The bytes of the bundle and of the runner are handed over in memory: no path is opened again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.isolation import cell_filter
from lyma_server.isolation.cell_life import Cell
from lyma_server.isolation.cell_marks import ENTER_INSIDE, FIRST_USER, SLOTS
from lyma_server.isolation.cell_mounts import Contents, cell_arguments
from lyma_server.isolation.launch import Process, launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PYTHON: Final = ("/usr/bin/python3", "-I", "-S", "-B")
"""The system's own: any other may lie where the user of a slot may not go. Nothing but its standard library is loaded."""

SETPRIV: Final = "/usr/bin/setpriv"
ENTER: Final = Path(__file__).with_name("cell_enter.py")
ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "HOME": "/work", "TMPDIR": "/work", "LANG": "C.UTF-8"}
"""All of it: bubblewrap is started with this too, for inside `/proc/1/environ` shows what it was started with."""

DESCRIPTORS: Final = 64
SIGNALS: Final = 128
"""That wait, and timers: each costs memory of the kernel's."""


@frozen(kw_only=True)
class CellLimits:
    """What the kernel holds a cell to. `processes` counts threads too; with 1 not even a thread can be started.

    `cpu_s` is for all together. Memory is that of one process, so together they may use `memory_bytes` times `processes`.
    """

    cpu_s: int
    memory_bytes: int
    scratch_bytes: int
    processes: int


@frozen(kw_only=True)
class CellPlan:
    """`files` are bytes by the path inside. `program` are the words of an agent's own program; where that is null, the
    function `main` of `module` is run, which is among `files` below `/lyma`.
    """

    bwrap: Path
    files: Mapping[str, bytes]
    input_folder: Path
    limits: CellLimits
    slot: int
    tree: Path | None = None
    module: str = ""
    program: tuple[str, ...] | None = None
    stdin: bool = False


_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cells")


async def start_cell(plan: CellPlan) -> Cell:
    """Start one. Raises HelperFailed where bubblewrap cannot even be started; what goes wrong later ends the cell.

    A start that is cancelled goes on until there is something to hold, and is ended by that: between making the first
    process and letting it go on, bubblewrap would leave it behind for ever.
    """
    starting = asyncio.ensure_future(_start(plan))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _undisturbed(starting)
        if starting.exception() is None:
            cell = starting.result()
            cell.channel.close()
            await cell.stop(0)
        raise


async def _start(plan: CellPlan) -> Cell:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    info, told = os.pipe()
    with theirs, ExitStack() as unless_started, ExitStack() as stack:
        unless_started.callback(ours.close)
        unless_started.callback(os.close, info)
        stack.callback(os.close, told)
        words, given = _prepare(plan, theirs.fileno(), told, stack)
        descriptors = (*given, theirs.fileno(), told)
        loop = asyncio.get_running_loop()
        process = await loop.run_in_executor(_starter, lambda: _launch(words, descriptors, stdin=plan.stdin))
        unless_started.pop_all()
    cell = Cell(process, ours)
    try:
        await cell.find_first(info)
    except BaseException:
        ours.close()
        await cell.stop(0)
        raise
    cell.watch(plan.limits.cpu_s, plan.limits.scratch_bytes)
    return cell


async def _undisturbed(starting: asyncio.Future[Cell]) -> None:
    """Wait for it, however often we are cancelled."""
    while not starting.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({starting})


def _launch(words: list[str], descriptors: tuple[int, ...], *, stdin: bool) -> Process:
    return launch(words, env=ENVIRONMENT, cwd="/", stdin_pipe=stdin, pass_fds=descriptors, tether=False)


def _prepare(plan: CellPlan, channel: int, info: int, stack: ExitStack) -> tuple[list[str], tuple[int, ...]]:
    """The words that start it, and the descriptors that they speak of, which `stack` closes."""
    alone = plan.limits.processes == 1
    outer = _in_memory(cell_filter.outer_filter(alone=alone), stack)
    files = {
        path: _in_memory(content, stack) for path, content in {ENTER_INSIDE: ENTER.read_bytes(), **plan.files}.items()
    }
    contents = Contents(
        files=files,
        input_folder=plan.input_folder,
        tree=plan.tree,
        scratch_bytes=plan.limits.scratch_bytes,
        outer_filter=outer,
        info=info,
    )
    entering = (*PYTHON, ENTER_INSIDE, *_order(plan, channel))
    return [*drop(plan.slot), str(plan.bwrap), *cell_arguments(contents), "--", *entering], (outer, *files.values())


def _order(plan: CellPlan, channel: int) -> Iterator[str]:
    """The arguments of the first program; see cell_enter.py."""
    yield f"channel={channel}"
    yield from (f"{name}={soft}:{hard}" for name, (soft, hard) in kernel_limits(plan.limits).items())
    if plan.program is not None:
        yield from ("--", *plan.program)
        return
    if plan.limits.processes == 1:
        yield f"filter={cell_filter.inner_filter().hex()}"
    yield f"module={plan.module}"


def drop(slot: int) -> tuple[str, ...]:
    """The words by which root becomes, before anything else, a user who owns nothing. Raises ValueError for no slot."""
    if not 0 <= slot < SLOTS:
        raise ValueError(f"there is no slot {slot}")
    if os.geteuid() != 0:
        return ()
    user = FIRST_USER + slot
    return (SETPRIV, f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--")


def kernel_limits(limits: CellLimits) -> dict[str, tuple[int, int]]:
    """The soft and the hard one, by the names of resource.RLIMIT_*."""
    both = {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_NPROC": limits.processes + 1,  # the first process of the namespace is counted
        "RLIMIT_FSIZE": limits.scratch_bytes,
        "RLIMIT_NOFILE": DESCRIPTORS,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": SIGNALS,
    }
    cpu = (limits.cpu_s, limits.cpu_s + 1)  # the first tells what ended it, the second cannot be ignored
    return {"RLIMIT_CPU": cpu, **{name: (most, most) for name, most in both.items()}}


def _in_memory(content: bytes, stack: ExitStack) -> int:
    """A descriptor to read `content` from."""
    descriptor = os.memfd_create("lyma", os.MFD_CLOEXEC)
    stack.callback(os.close, descriptor)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
