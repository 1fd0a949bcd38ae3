"""The commands of every session, made when the first is run. Imports nothing heavy: most sessions run none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.executor.run import Commands

Make: TypeAlias = "Callable[[Path], Commands]"
"""Makes what runs commands in a workspace."""


MOST_OPEN: Final = 8
"""Sandboxes; each takes three processes and some forty megabytes. Those in which something runs are not counted out."""


class CommandSessions:
    """By session and workspace, since a session may move to another folder."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._known: dict[tuple[str, Path], Commands] = {}
        self._resting: set[asyncio.Task[None]] = set()
        self._proven: set[Path] = set()

    def of(self, session: str, root: Path) -> Commands:
        """The commands of a session in the workspace `root`, a real path. Needs a running event loop."""
        key = (session, root)
        commands = self._known.pop(key, None) or self._make(root)
        self._known[key] = commands
        self._let_rest(commands)
        return commands

    async def prove_mask(self, root: Path) -> None:
        """See, once for a workspace, that Lyma's home is out of reach of all commands there. Raises MaskUnavailable."""
        if root not in self._proven:
            await self._make(root).prove_mask()
            self._proven.add(root)

    async def end(self, session: str) -> None:
        """End all that a session runs."""
        ended = [self._known.pop(key) for key in list(self._known) if key[0] == session]
        await asyncio.gather(*(commands.close() for commands in ended))

    async def close(self) -> None:
        """End all."""
        ended, self._known = list(self._known.values()), {}
        await asyncio.gather(*(commands.close() for commands in ended), *self._resting)

    def _let_rest(self, wanted: Commands) -> None:
        """Close the sandboxes that were not used for the longest time; whoever wants one again gets a new one."""
        others = [commands for commands in self._known.values() if commands.is_open and commands is not wanted]
        idle = [commands for commands in others if not commands.is_busy]
        for commands in idle[: max(0, len(others) + 1 - MOST_OPEN)]:
            task = asyncio.get_running_loop().create_task(commands.rest())
            self._resting.add(task)
            task.add_done_callback(self._resting.discard)
