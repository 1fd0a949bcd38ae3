"""A person at a terminal: starts `lyma` on a pseudo-terminal, waits for what it says and types."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.lyma import COMMAND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ASKS_FOR_THE_CURSOR = b"\x1b[6n"
"""A line editor asks where the cursor is; every terminal answers that."""


class PseudoTerminal:
    """`shown` is all that a screen would have shown, what was typed and echoed included."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        cwd: Path | None = None,
    ) -> None:
        self._own, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self._process = subprocess.Popen(
            [*command, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)

    def expect(self, text: str, timeout_s: float = 20) -> None:
        """Wait until `text` is shown after what was expected last."""
        end = time.monotonic() + timeout_s
        while text not in self.shown[self._seen :]:
            assert self._read(end), f"{text!r} was not shown: {self.shown!r}"
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._own, f"{text}\n".encode())

    def press(self, key: str) -> None:
        """Press a key, such as control and d, which is "\x04"."""
        os.write(self._own, key.encode())

    def interrupt(self) -> None:
        """Press control and c. The program is not the leader of this terminal, so the signal comes from us."""
        self._process.send_signal(signal.SIGINT)

    def leave(self, timeout_s: float = 20) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + timeout_s
        while self._read(end):
            pass
        return self._process.wait(timeout_s)

    def _read(self, end: float) -> bool:
        """Whether something more was shown before the end of time or of the program."""
        ready, _, _ = select.select([self._own], [], [], max(0.0, end - time.monotonic()))
        chunk = b""
        with suppress(OSError):  # what Linux says when the other side has closed
            chunk = os.read(self._own, 65536) if ready else b""
        if ASKS_FOR_THE_CURSOR in chunk:
            os.write(self._own, b"\x1b[1;1R")
        self.shown += chunk.decode(errors="replace")
        return bool(chunk)
