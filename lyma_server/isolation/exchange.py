"""What goes to one program and comes from it, descriptor by descriptor. Waiting for them is someone else's part."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.isolation.launch import HelperFailed, Process, has_ended, open_exit, signal_group

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

CHUNK = 1 << 16
PATIENCE_S = 0.5
"""How long a pipe may stay open after its program has ended: something that left its group may hold it."""


class Exchange:
    """Feed `stdin` to a started program and keep what it says, at most `output_limit` bytes of both outputs together."""

    def __init__(self, process: Process, stdin: bytes, output_limit: int) -> None:
        self.process = process
        self.reading: set[int] = set()
        self.writing: set[int] = set()
        self._outputs: dict[int, bytearray] = {}
        self._left = output_limit
        self._input = memoryview(stdin)
        self._ended_at: float | None = None
        self._exit = open_exit(process)
        self._watch()

    def _watch(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                self._outputs[pipe.fileno()] = bytearray()
        self.reading.update(self._outputs)
        if self.process.stdin is not None:
            self.writing.add(self.process.stdin.fileno())
        for fd in self.reading | self.writing:
            os.set_blocking(fd, False)
        if self._exit is not None:
            self.reading.add(self._exit)

    def finished(self) -> bool:
        """The program has ended and its pipes are read to their end, or to the end of our patience."""
        if self._exit is None and self._ended_at is None and has_ended(self.process):
            self._end()
        if self._ended_at is None:
            return False
        return not self.reading or time.monotonic() - self._ended_at > PATIENCE_S

    @property
    def wakes(self) -> bool:
        """Whether a descriptor will turn ready at the next thing to happen; otherwise `finished` must be asked again."""
        return self._exit is not None and self._ended_at is None

    def step(self, fd: int) -> None:
        """Go on where `fd` is ready. Raises HelperFailed when the output passes its limit."""
        if fd in self._outputs:
            self._read(fd)
        elif fd == self._exit:
            self.reading.discard(fd)
            self._end()
        else:
            self._write(fd)

    def unwanted(self, watched: AbstractSet[int]) -> AbstractSet[int]:
        """Which of the `watched` descriptors need no more watching."""
        return watched - self.reading - self.writing

    def outputs(self) -> tuple[bytes, bytes]:
        """All of stdout and stderr so far."""
        stdout, stderr = self._outputs.values()
        return bytes(stdout), bytes(stderr)

    def close(self) -> None:
        if self._exit is not None:
            os.close(self._exit)

    def _end(self) -> None:
        """What the program left in its group ends with it, while the number of the group is still its own."""
        self._ended_at = time.monotonic()
        signal_group(self.process, signal.SIGKILL)
        self.writing.clear()

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self.reading.discard(fd)
        self._left -= len(chunk)
        if self._left < 0:
            raise HelperFailed(f"{program_name(self.process)} said more than it may.", reason="output")
        self._outputs[fd] += chunk

    def _write(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = memoryview(b"")
        if not self._input:
            self.writing.discard(fd)
            if self.process.stdin is not None:
                self.process.stdin.close()


def program_name(process: Process) -> str:
    """The name of the program for a message: the first word after those of the tether."""
    words = [str(word) for word in process.args] if isinstance(process.args, list) else [str(process.args)]
    return Path(words[words.index("--") + 1] if "--" in words[:4] else words[0]).name
