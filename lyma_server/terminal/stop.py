"""How a turn in the terminal is stopped: Ctrl-C, a closed terminal, a reader that left."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterator, Mapping

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CANCELLED = 130


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


class Stop(TurnStop):
    """Asks once; the second signal leaves at once, whatever is under way."""

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Stop on a signal."""
        with handled(self._loop, dict.fromkeys(SIGNALS, self._signalled)):
            yield

    def _signalled(self) -> None:
        if self._wanted:
            _leave()
        self.ask()


@contextmanager
def handled(loop: AbstractEventLoop, acts: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Listen to signals. One that is ignored already, as under nohup, stays so."""
    acts = {number: act for number, act in acts.items() if signal.getsignal(number) is not signal.SIG_IGN}
    for number, act in acts.items():
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in acts:
            loop.remove_signal_handler(number)


def _leave() -> NoReturn:
    from lyma_server.isolation.launch import end_all

    end_all()
    os._exit(CANCELLED)
