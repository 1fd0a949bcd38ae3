"""The real server, which says on its stderr what it is about whenever it is sent ASK.

The product knows nothing of it: the handler is there before the server is.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND: Final = (sys.executable, "-c", "from tests.soak.witness import serve; serve()", "--stdio")
ASK: Final = signal.SIGUSR2
ASK_THREADS: Final = signal.SIGUSR1
END: Final = b"-- these were all tasks --\n"
DEEPEST: Final = 40
FRAMES: Final = ("cr_frame", "gi_frame", "ag_frame")
INNER: Final = ("cr_await", "gi_yieldfrom", "ag_await")


def serve() -> None:
    """Run `lyma-server` with a witness in it."""
    signal.signal(ASK, _tell_tasks)
    faulthandler.register(ASK_THREADS, all_threads=True)  # says it even where the main thread takes no step
    from lyma_server.entry import server

    server()


def _tell_tasks(*_: object) -> None:
    """In the main thread, between two steps of Python."""
    told = [f"task {task.get_name()}\n{''.join(_way_in(task.get_coro()))}" for task in _tasks()]
    sys.__stderr__.write("".join(told) + END.decode())
    sys.__stderr__.flush()


def _tasks() -> list[asyncio.Task[Any]]:
    try:
        return sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    except RuntimeError:  # no event loop runs
        return []


def _way_in(awaited: Any) -> Iterator[str]:
    """From the task's own coroutine to what it waits for in the end, each as file and line."""
    for _ in range(DEEPEST):
        frame = _first(awaited, FRAMES)
        if frame is not None:
            yield f"  {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}\n"
            awaited = _first(awaited, INNER)
            continue
        held = [each for each in gc.get_referents(awaited) if _first(each, FRAMES) or asyncio.isfuture(each)]
        if not held:  # a step of a generator and an iterator over a future do not tell what they are of
            return
        awaited = held[0]
        if asyncio.isfuture(awaited):
            yield f"  {awaited!r}\n"
            return


def _first(thing: Any, names: tuple[str, ...]) -> Any:
    return next((getattr(thing, name) for name in names if hasattr(thing, name)), None)
