"""One turn: what a face holds while the agent works."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.protocol.messages import AskResult


class Turn:
    """A turn under way. `session` and `turn` are its ids."""

    session: str
    turn: str

    async def result(self) -> AskResult:
        """Wait for the end; several may. A cancelled turn has a result like any other.

        Raises what ended the turn early (AllFailed, StreamInterrupted, UsageError, …), always after `turn.completed`.
        """
        raise NotImplementedError

    def cancel(self) -> None:
        """Stop: at any time, any number of times. The result follows in under two seconds."""
        raise NotImplementedError
