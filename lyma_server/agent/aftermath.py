"""Tells the person what something has left in the workspace that their own git or editor would run later."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lyma_server.protocol.events import Notice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lyma_server.agent.tools.base import Toolbox


@asynccontextmanager
async def told_after(who: str, box: Toolbox) -> AsyncIterator[None]:
    """Compare before and after the block. `who` begins the sentences."""
    from lyma_server.executor.planted import planted

    before = await asyncio.to_thread(planted, box.bounds.root, who)
    try:
        yield
    finally:
        left = await asyncio.to_thread(planted, box.bounds.root, who) - before
        for sentence in sorted({sentence for sentence, _ in left}):
            box.emit(Notice(text=sentence, level="warning"))
