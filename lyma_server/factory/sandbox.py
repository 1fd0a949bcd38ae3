"""The sandbox of compiled agents. There is no other way to run one, and where it cannot be had none runs."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.errors import SandboxUnavailable, refusal_of
from lyma_server.factory.channel import Channel
from lyma_server.factory.lines import Lines
from lyma_server.isolation.cell import CellLimits, CellPlan, start_cell
from lyma_server.isolation.cell_canary import prove_cells
from lyma_server.isolation.cell_marks import FIRST_USER, OURS, SLOTS
from lyma_server.isolation.launch import HelperFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.factory.bundle import Bundle
    from lyma_server.isolation.cell_life import Cell, Ended

MEBIBYTE: Final = 1 << 20
PACKAGES: Final = Path(__file__).resolve().parents[2]
RUNNER: Final = "lyma_server/factory/runner"
RUNNER_MODULE: Final = "lyma_server.factory.runner.begin"
SHARED: Final = tuple(f"lyma_server/factory/{name}.py" for name in ("globs", "protected", "wildcard"))
"""Modules of the standard library's kind that the runner uses, too."""
EMPTY: Final = ("lyma_server/__init__.py", "lyma_server/factory/__init__.py")
AGENT: Final = "/agent"
"""Where the bundle's files lie inside."""


@frozen(kw_only=True)
class Limits:
    """What the kernel holds a run to. `wall_s` is the parent's to watch."""

    cpu_s: int
    memory_mb: int
    scratch_mb: int
    processes: int
    wall_s: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Limits:
        """Those that a manifest sets."""
        budget = facts["spec"]["budget"]
        return cls(**{name: budget[name] for name in ("cpu_s", "memory_mb", "scratch_mb", "processes", "wall_s")})


@frozen(kw_only=True)
class Launch:
    """What to start. `staged` is a folder of ours that becomes /in, in one that everybody may enter; null `limits` are the manifest's.

    `program` is for a bundle of another kind than "data": its words, by their paths inside; `tree` is a folder that becomes
    /tree. With `lines`, it speaks by lines on stdin and stdout, too.
    """

    bundle: Bundle
    staged: Path
    limits: Limits | None = None
    program: tuple[str, ...] | None = None
    tree: Path | None = None
    lines: bool = False


class Inside:
    """A run that is under way inside."""

    def __init__(self, cell: Cell, channel: Channel) -> None:
        self.channel = channel
        self._cell = cell

    def lines(self) -> Lines:
        """Its stdin and stdout, where the launch asked for them; to be called once, right after the start."""
        return Lines(self._cell.listen)

    async def wait(self) -> Ended:
        """Wait for its end; nothing of it is left then. Cancelling the wait leaves it running."""
        return await self._cell.wait()

    async def stop(self, grace_s: float = 0.5) -> Ended:
        """Give it so long to end by itself, then kill all of it and collect it; any number of times.

        To say "cancel" on the channel before is the caller's part.
        """
        try:
            return await self._cell.stop(grace_s)
        finally:
            self.channel.close()


class Sandbox:
    """Starts runs. One for the process."""

    def __init__(self) -> None:
        self._bwrap: Path | None = None
        self._proving = asyncio.Lock()
        self._slots = set(range(SLOTS))
        self._tasks: set[asyncio.Task[None]] = set()

    async def prove(self) -> None:
        """See, once, that the sandbox holds here. Raises SandboxUnavailable with the remedy where it does not."""
        async with self._proving:
            if self._bwrap is None:
                self._bwrap = await prove_cells()

    async def start(self, launch: Launch) -> Inside:
        """Start a run. Raises SandboxUnavailable where none can be started; nothing of it ran then."""
        await self.prove()
        if self._bwrap is None or not self._slots:
            raise SandboxUnavailable("Too many compiled agents run at once; wait for one to end.")
        slot = min(self._slots)
        self._slots.discard(slot)
        try:
            for folder in filter(None, (launch.staged, launch.tree)):
                _hand_over(folder, slot)
            cell = await start_cell(_plan(self._bwrap, launch, slot))
        except BaseException as error:
            self._slots.add(slot)
            if isinstance(error, HelperFailed):
                raise SandboxUnavailable(f"No sandbox could be started: {error.message}") from error
            if (refusal := refusal_of(error)) is not None:
                raise SandboxUnavailable(f"No sandbox could be started: {refusal}.") from error
            raise
        task = asyncio.create_task(self._release(cell, slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Inside(cell, Channel(cell.channel))

    async def _release(self, cell: Cell, slot: int) -> None:
        await cell.wait()
        self._slots.add(slot)


def _hand_over(folder: Path, slot: int) -> None:
    """Let the user of a slot, and no other, enter a folder of root's."""
    if os.geteuid() == 0:
        os.chown(folder, FIRST_USER + slot, -1)
        folder.chmod(0o500)


def _plan(bwrap: Path, launch: Launch, slot: int) -> CellPlan:
    limits = launch.limits or Limits.of(launch.bundle.facts)
    agent = {"manifest.json": launch.bundle.manifest, **launch.bundle.files}
    files = {f"{AGENT}/{name}": content for name, content in agent.items()}
    if launch.program is None:
        files |= {f"{OURS}/{name}": content for name, content in runner_files().items()}
    return CellPlan(
        bwrap=bwrap,
        files=files,
        input_folder=launch.staged,
        limits=CellLimits(
            cpu_s=limits.cpu_s,
            memory_bytes=limits.memory_mb * MEBIBYTE,
            scratch_bytes=limits.scratch_mb * MEBIBYTE,
            processes=limits.processes,
        ),
        slot=slot,
        tree=launch.tree,
        module=RUNNER_MODULE,
        program=launch.program,
        stdin=launch.lines,
    )


@cache
def runner_files() -> Mapping[str, bytes]:
    """The code that runs inside, by its path below the packages; read once, so that a run sees one version of it."""
    own = sorted(str(path.relative_to(PACKAGES)) for path in (PACKAGES / RUNNER).glob("*.py"))
    return dict.fromkeys(EMPTY, b"") | {name: (PACKAGES / name).read_bytes() for name in (*own, *SHARED)}
