"""The commands of every session, made when the first is run. Imports nothing heavy: most sessions run none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.executor.run import Commands

Make: TypeAlias = "Callable[[Path], Commands]"
"""Makes what runs commands in a workspace."""


class CommandSessions:
    """By session and workspace, since a session may move to another folder."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._open: dict[tuple[str, Path], Commands] = {}

    def of(self, session: str, root: Path) -> Commands:
        """The commands of a session in the workspace `root`, a real path."""
        key = (session, root)
        if key not in self._open:
            self._open[key] = self._make(root)
        return self._open[key]

    async def end(self, session: str) -> None:
        """End all that a session runs."""
        for key in [key for key in self._open if key[0] == session]:
            await self._open.pop(key).close()

    async def close(self) -> None:
        """End all."""
        for session, _ in list(self._open):
            await self.end(session)
