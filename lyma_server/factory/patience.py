"""Work that must come to its end although whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Result = TypeVar("Result")


async def undisturbed(
    work: Coroutine[Any, Any, Result] | asyncio.Task[Result], on_cancel: Callable[[], object] | None = None
) -> Result:
    """Wait for the end of `work`, even if we are cancelled meanwhile; that is raised then, after the end.

    `on_cancel` may hurry it.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it was heard
        raise cancelled
    return task.result()
