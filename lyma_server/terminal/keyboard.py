"""Where the lines of a conversation come from: a person who edits them, or a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

HISTORY_LIMIT = 1 << 20
"""Bytes; a history that has grown beyond them begins anew."""


class Interrupted(Exception):
    """Ctrl-C, or a signal, while a line was awaited."""


class Keyboard(Protocol):
    """`is_person`: somebody is there who edits the lines."""

    is_person: bool

    async def read(self) -> str | None:
        """The next prompt, which may have several lines; null at the end. Raises Interrupted."""

    def interrupt(self) -> None:
        """End the wait for a line."""


def keyboard_for(history: Path, redact: Callable[[str], str], status: Callable[[], str]) -> Keyboard:
    """By what stdin and stdout are."""
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return LineEditor(history, redact, status)
    return PipeReader()


class PipeReader:
    """A line is a prompt. A thread reads, for a file cannot be waited for; it ends with the process."""

    is_person = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | Interrupted | None] = asyncio.Queue()
        threading.Thread(target=self._run, name="input", daemon=True).start()

    async def read(self) -> str | None:
        line = await self._lines.get()
        if isinstance(line, Interrupted):
            raise line
        return line

    def interrupt(self) -> None:
        self._lines.put_nowait(Interrupted())

    def _run(self) -> None:
        with suppress(RuntimeError, OSError, ValueError):  # the loop or stdin is closed
            for line in sys.stdin.buffer:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.decode(errors="replace"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


class LineEditor:
    """Edits with prompt_toolkit. What was asked is kept in a file that only its owner reads, without known secrets."""

    is_person = True

    def __init__(self, history: Path, redact: Callable[[str], str], status: Callable[[], str]) -> None:
        from prompt_toolkit import PromptSession

        self._session: PromptSession[str] = PromptSession(
            message="> ",
            history=_history(history, redact),
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation="  ",
            bottom_toolbar=status,
            enable_history_search=False,
        )

    async def read(self) -> str | None:
        """Enter ends a prompt, Alt-Enter or a backslash at the end of a line begins a new one."""
        try:
            return await self._session.prompt_async(handle_sigint=False)
        except EOFError:
            return None
        except KeyboardInterrupt:
            raise Interrupted from None

    def interrupt(self) -> None:
        answer = self._session.app.future
        if answer is not None and not answer.done():
            self._session.app.exit(exception=KeyboardInterrupt)


def _history(path: Path, redact: Callable[[str], str]) -> Any:
    """Kept on the disk where that can be had, else in memory."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class PrivateHistory(FileHistory):
        def load_history_strings(self) -> Iterable[str]:
            with suppress(OSError):
                yield from super().load_history_strings()

        def store_string(self, string: str) -> None:
            with suppress(OSError):
                super().store_string(redact(string))

    try:
        flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        if os.fstat(descriptor).st_size > HISTORY_LIMIT:
            os.ftruncate(descriptor, 0)
        os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))


def _bindings() -> Any:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
