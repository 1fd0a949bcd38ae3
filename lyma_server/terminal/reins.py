"""Signals in a conversation: Ctrl-C stops a turn and never the program; a terminal that closes ends both."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterator

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class TurnStop:
    """What stops one turn."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._act: Callable[[], None] | None = None
        self._wanted = False

    def when_asked(self, act: Callable[[], None]) -> None:
        """What to do when asked; done at once if that has been already."""
        self._act = act
        if self._wanted:
            act()

    def from_thread(self) -> None:
        """Stop, from any thread."""
        self._loop.call_soon_threadsafe(self.ask)

    def ask(self) -> None:
        """Stop, any number of times."""
        self._wanted = True
        if self._act is not None:
            self._act()


class Reins:
    """Knows the turn under way. `let_go` is set once the whole conversation is to end; `wake` ends a wait for input."""

    def __init__(self, loop: AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop, self._wake = loop, wake
        self._turn: TurnStop | None = None
        self.let_go = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Listen to signals. One that is ignored already, as under nohup, stays so."""
        acts = {signal.SIGINT: self._interrupt, **dict.fromkeys(ENDINGS, self._end)}
        acts = {number: act for number, act in acts.items() if signal.getsignal(number) is not signal.SIG_IGN}
        for number, act in acts.items():
            self._loop.add_signal_handler(number, act)
        try:
            yield
        finally:
            for number in acts:
                self._loop.remove_signal_handler(number)

    @contextmanager
    def turn(self) -> Iterator[TurnStop]:
        """A turn is under way."""
        self._turn = TurnStop(self._loop)
        try:
            yield self._turn
        finally:
            self._turn = None

    def _interrupt(self) -> None:
        if self._turn is not None:
            self._turn.ask()
        else:
            self._wake()

    def _end(self) -> None:
        self.let_go = True
        self._interrupt()
