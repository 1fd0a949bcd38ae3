"""Runs the agent's commands: the only place that starts one.

A command is judged by its text, then started inside the sandbox of its session, whose mask was proven, where the exec
guard judges whatever it executes. What the blacklist names cannot be let through: nothing here takes a parameter for it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import define, field, frozen

from lyma_server.errors import CommandForbidden, MaskUnavailable, ToolError
from lyma_server.executor.enclosure import Enclosure, Process, new_enclosure
from lyma_server.executor.ground import Ground, fence_for
from lyma_server.executor.output import HeadAndTail, Reader
from lyma_server.executor.verdict import judge
from lyma_server.isolation.heir import Heir
from lyma_server.isolation.tier import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lyma_server.isolation.guard import Refusal
    from lyma_server.isolation.tier import Fence

SHELLS: Final = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash")
"""Never by PATH, which others may have written."""

SHELL_OPTIONS: Final = ("--noprofile", "--norc", "-c")
CHUNK: Final = 1 << 18
DRAIN_S: Final = 0.25
"""How long the output may stay open after a command has ended: something that it left running may hold it."""

STOP_S: Final = 1.2
KEPT_ENDED: Final = 20
"""Background commands that have ended and are still listed."""

OnText: TypeAlias = Callable[[str], None]
OnBytes: TypeAlias = Callable[[bytes], None]


@define(eq=False)
class Command:
    """A command under way or at its end. `number` names it in its session; `started` is the wall clock's time.

    `status` is the exit status, 128 and the signal's number where one ended it, null while it runs.
    """

    number: int
    text: str
    process: Process
    output: HeadAndTail
    background: bool = False
    started: float = field(factory=time.time)
    status: int | None = None
    stopped: bool = False
    timed_out: bool = False
    drained: asyncio.Event = field(factory=asyncio.Event)

    @property
    def refusals(self) -> list[Refusal]:
        """What the exec guard refused to it."""
        return self.process.refusals

    @property
    def leaves_processes(self) -> bool:
        """Whether something that it started still runs, itself included."""
        return not self.process.gone.done()


@frozen
class Manner:
    """How commands are run: the environment they get, seconds a foreground one may take, characters of output kept."""

    environment: Mapping[str, str]
    timeout_s: float = 600
    output_limit: int = 65536


class Commands:
    """The commands of one session in one workspace. They end with it."""

    def __init__(self, ground: Ground, manner: Manner) -> None:
        self.ground, self.manner = ground, manner
        self._enclosure: Enclosure | None = None
        self._opening = asyncio.Lock()
        self._numbers = 0
        self._listed: deque[Command] = deque()
        self.notices: list[str] = []
        """Sentences for the person that were not told yet."""
        self._told: set[str] = set()
        self._rested = False
        self._environment = {**manner.environment, "TMPDIR": TEMPORARY}

    async def prove_mask(self) -> None:
        """See that Lyma's home is out of reach of what would be run here. Raises MaskUnavailable, and ConfigError."""
        await fence_for(self.ground)

    async def run(
        self,
        text: str,
        *,
        folder: Path | None = None,
        timeout_s: float | None = None,
        on_text: OnText | None = None,
        on_bytes: OnBytes | None = None,
    ) -> Command:
        """Run a command to its end, or to its timeout, which ends it with all that it started. Cancelling does that too.

        Raises CommandForbidden, MaskUnavailable, and ToolError where the folder or the shell is missing.
        """
        command = await self.start(text, folder=folder, on_text=on_text, on_bytes=on_bytes)
        await self.finish(command, timeout_s)
        return command

    async def finish(self, command: Command, timeout_s: float | None = None) -> None:
        """Wait for the end of a command that was started, as `run` does."""
        limit = self.manner.timeout_s if timeout_s is None else min(timeout_s, self.manner.timeout_s)
        try:
            await self._until_ended(command, limit)
        except BaseException:
            await self._stop_shielded(command)
            raise

    async def start(
        self,
        text: str,
        *,
        folder: Path | None = None,
        on_text: OnText | None = None,
        on_bytes: OnBytes | None = None,
        background: bool = False,
    ) -> Command:
        """Start a command and return at once. Raises as `run` does."""
        cwd = self._folder(folder)
        await self.check(text, cwd)
        enclosure = await self._open()
        words = [_shell(), *SHELL_OPTIONS, text]
        process = await enclosure.start(words, self._environment, str(cwd))
        self._numbers += 1
        command = Command(self._numbers, text, process, HeadAndTail(self.manner.output_limit), background)
        _Drain(command, on_text, on_bytes)
        process.status.add_done_callback(lambda status: _note_status(command, status.result()))
        self._list(command)
        return command

    async def check(self, text: str, cwd: Path | None = None) -> None:
        """Judge the text of a command. Raises CommandForbidden."""
        place = self.ground.place
        verdict = await asyncio.to_thread(
            judge,
            text,
            cwd=str(self._folder(cwd)),
            home=place.home,
            workspace=place.workspace,
            lyma_home=place.lyma_home,
            env=self._environment,
        )
        if not verdict.allowed:
            raise CommandForbidden(
                f"This command is forbidden and was not run ({verdict.rule}). {verdict.message}",
                rule=verdict.rule,
                part=verdict.part,
                reason=verdict.reason,
                instead=verdict.instead,
            )

    @property
    def is_open(self) -> bool:
        """Whether its sandbox is there."""
        return self._enclosure is not None and not self._enclosure.closed

    @property
    def is_busy(self) -> bool:
        """Whether anything runs in it, or is about to."""
        return self._opening.locked() or any(command.leaves_processes for command in self._listed)

    def listed(self) -> tuple[Command, ...]:
        """Background commands, and others that left something running; the latest last."""
        return tuple(self._listed_now())

    async def stop(self, number: int) -> Command:
        """End a command with all that it started. Raises ToolError where there is none of that number."""
        command = next((each for each in self._listed if each.number == number), None)
        if command is None:
            raise ToolError(f"There is no command {number}; list_commands tells which there are.")
        await self._stop_shielded(command)
        return command

    async def close(self) -> None:
        """End everything."""
        enclosure, self._enclosure = self._enclosure, None
        if enclosure is not None:
            await enclosure.close()

    async def rest(self) -> None:
        """Let the sandbox end until a command is wanted again."""
        if self.is_open:
            self._rested = True
        await self.close()

    async def _open(self) -> Enclosure:
        async with self._opening:
            if self._enclosure is not None and not self._enclosure.closed:
                return self._enclosure
            if self._enclosure is not None:
                await self._enclosure.close()
                self.notices.append(
                    "The sandbox of the commands had ended; a new one was started, without what ran in it."
                )
            if self._rested:
                self._rested = False
                self.notices.append("The sandbox of this session had been let go while idle; its /tmp is empty now.")
            fence, self._enclosure = await self._fresh()
            self._environment = {**self.manner.environment, **fence.environment}
            guard = self._enclosure.guard
            told = (*fence.notices, *(() if guard == "on" else (_without_guard(guard),)))
            self.notices += [notice for notice in told if notice not in self._told]
            self._told.update(told)
            return self._enclosure

    async def _fresh(self) -> tuple[Fence, Enclosure]:
        """A new sandbox. What was surveyed may be gone a moment later, such as another program's socket: then once more."""
        try:
            return await self._begin()
        except MaskUnavailable:
            return await self._begin()

    async def _begin(self) -> tuple[Fence, Enclosure]:
        enclosure = new_enclosure()  # it takes a moment, in which the fence is made and proven
        heir = Heir.of(())  # killed meanwhile, we would leave the first process of a bubblewrap behind
        try:
            fence = await fence_for(self.ground)
            await enclosure.open(fence.words, self.ground.place, fence.reach)
        except BaseException:
            await enclosure.close()
            raise
        finally:
            heir.dismiss()
        return fence, enclosure

    def _folder(self, folder: Path | None) -> Path:
        path = self.ground.workspace if folder is None else self.ground.workspace / folder
        if not path.is_dir():
            raise ToolError(f"There is no folder {path}; give one that exists.")
        return path

    async def _until_ended(self, command: Command, limit_s: float) -> None:
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.shield(command.process.status)
        except TimeoutError:
            command.timed_out = True
            await self._stop_shielded(command)
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await command.drained.wait()
                await asyncio.shield(command.process.gone)

    async def _stop_shielded(self, command: Command) -> None:
        """End it, whatever happens to who asks for it."""
        task = asyncio.ensure_future(self._stop(command))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    async def _stop(self, command: Command) -> None:
        if self._enclosure is None or command.process.gone.done():
            return
        command.stopped = True
        self._enclosure.stop(command.process)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await asyncio.shield(command.process.gone)

    def _list(self, command: Command) -> None:
        self._listed.append(command)
        command.process.gone.add_done_callback(lambda _: self._forget_ended())

    def _forget_ended(self) -> None:
        self._listed = deque(self._listed_now())
        ended = [command for command in self._listed if not command.leaves_processes]
        for command in ended[:-KEPT_ENDED]:
            self._listed.remove(command)

    def _listed_now(self) -> list[Command]:
        return [each for each in self._listed if each.background or each.leaves_processes]


class _Drain:
    """Reads the output of a command to its end, for as long as anything may write there."""

    def __init__(self, command: Command, on_text: OnText | None, on_bytes: OnBytes | None) -> None:
        self._command, self._on_text, self._on_bytes = command, on_text, on_bytes
        self._descriptor = command.process.output
        self._reader = Reader()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._command.drained.set()
        if self._on_bytes is not None and piece:
            self._on_bytes(piece)
        text = self._reader.feed(piece, last=not piece)
        self._command.output.feed(text)
        if self._on_text is not None and text:
            self._on_text(text)


def _note_status(command: Command, status: int) -> None:
    command.status = status if status >= 0 else 128 - status


def _shell() -> str:
    shell = next((path for path in SHELLS if os.access(path, os.X_OK)), None)
    if shell is None:
        raise ToolError("bash is not installed, so no command runs; install it.")
    return shell


def _without_guard(reason: str) -> str:
    if reason == "EBUSY":
        why = "another supervisor of system calls is here already"
    else:
        why = f"this kernel cannot ask about them ({reason})"
    return (
        f"Programs are not judged as they are executed: {why}. Commands are still judged by their text, and confined."
    )
