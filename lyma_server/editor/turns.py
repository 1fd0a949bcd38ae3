"""The turns under way, over all sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from lyma_server.errors import ServerBusy

if TYPE_CHECKING:
    from lyma_server.agent.turn import Turn
    from lyma_server.protocol.messages import AskResult

TURN_LIMIT: Final = 64


class Turns:
    """Counts, finds and ends turns."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}
        self._tokens: dict[str | int, Turn] = {}

    def check_room(self) -> None:
        """Raises ServerBusy where as many turns run as may."""
        if len(self._turns) >= TURN_LIMIT:
            raise ServerBusy(f"{TURN_LIMIT} turns are under way; wait until one ends, or cancel one.")

    def add(self, turn: Turn, token: str | int | None) -> None:
        """Take in a turn and the token of its progress."""
        self._turns[turn.turn] = turn
        if token is not None:
            self._tokens[token] = turn

    async def finish(self, turn: Turn, token: str | int | None) -> AskResult:
        """Wait for the result; whoever stops waiting ends the turn."""
        try:
            return await turn.result()
        except asyncio.CancelledError:
            turn.cancel()
            raise
        finally:
            self._turns.pop(turn.turn, None)
            if token is not None:
                self._tokens.pop(token, None)

    def cancel_token(self, token: str | int) -> None:
        """Cancel the turn whose progress has `token`."""
        if (turn := self._tokens.get(token)) is not None:
            turn.cancel()

    def cancel(self, session: str | None = None) -> int:
        """Cancel the turns of a session, or all; the number of turns."""
        chosen = [turn for turn in self._turns.values() if session in (None, turn.session)]
        for turn in chosen:
            turn.cancel()
        return len(chosen)

    async def close(self) -> None:
        """Cancel all and wait for their ends."""
        turns = list(self._turns.values())
        self.cancel()
        await asyncio.gather(*(turn.result() for turn in turns), return_exceptions=True)
