"""The core behind the face: built in a thread when the editor is ready, and again after a failure."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.compose import Core

Build: TypeAlias = "Callable[[], Core]"
"""Reads the configuration and joins the parts. Runs in a thread; raises LymaError."""


class Engine:
    """Holds the core, or builds it."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._opening: asyncio.Task[Core] | None = None
        self._warming: asyncio.Task[None] | None = None
        self.core: Core | None = None

    async def open(self) -> Core:
        """The core; it is built when first asked for, and built again where that failed. Raises LymaError."""
        if self.core is not None:
            return self.core
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_retrieve)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Core:
        try:
            self.core = core = await asyncio.to_thread(self._build)
        finally:
            self._opening = None
        self._warming = asyncio.create_task(core.router.warm_up())
        self._warming.add_done_callback(_retrieve)
        return core

    def redact(self, text: str) -> str:
        """`text` without the secrets that are known so far."""
        return text if self.core is None else self.core.redactor.redact(text)

    @property
    def home(self) -> Path | None:
        """Lyma's folder, where it is known."""
        return None if self.core is None else self.core.home.root

    async def close(self) -> None:
        """Give back what the core holds."""
        if self._warming is not None:
            self._warming.cancel()
        if self.core is not None:
            with contextlib.suppress(Exception):
                await self.core.close()


def _retrieve(task: asyncio.Task[Core] | asyncio.Task[None]) -> None:
    """Nobody may be waiting; whoever asks next meets the problem again."""
    if not task.cancelled():
        task.exception()
