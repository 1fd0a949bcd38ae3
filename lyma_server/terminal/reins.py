"""Signals in a conversation: Ctrl-C stops a turn and never the program; a terminal that closes ends both."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lyma_server.terminal.stop import TurnStop, handled

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterator

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class Reins:
    """Knows the turn under way. `let_go` is set once the whole conversation is to end; `wake` ends a wait for input."""

    def __init__(self, loop: AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop, self._wake = loop, wake
        self._turn: TurnStop | None = None
        self.let_go = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Listen to signals."""
        acts = {signal.SIGINT: self._interrupt, **dict.fromkeys(ENDINGS, self._end)}
        with handled(self._loop, acts):
            yield

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
