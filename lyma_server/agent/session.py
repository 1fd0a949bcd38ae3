"""Sessions on disk: one JSONL file each, which holds the conversation and the events to replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lyma_server.protocol.events import Event
    from lyma_server.protocol.messages import SessionInfo


class SessionStore:
    """The folder of sessions, `sessions/` in Lyma's home. `keep_days` is how long a session is kept."""

    def __init__(self, folder: Path, keep_days: int = 90) -> None:
        self.folder = folder
        self.keep_days = keep_days

    def list(self) -> tuple[SessionInfo, ...]:
        """All of them, the latest first."""
        raise NotImplementedError

    def latest(self, root: str | None = None) -> str | None:
        """The id of the session that was used last, in the workspace whose URI is `root` where given."""
        raise NotImplementedError

    def replay(self, session: str) -> Iterator[Event]:
        """The events of all its turns with `replay` set, numbered anew. Raises SessionNotFound."""
        raise NotImplementedError

    def fork(self, session: str) -> SessionInfo:
        """A new session that begins with the same conversation. Raises SessionNotFound."""
        raise NotImplementedError

    def delete(self, session: str) -> None:
        """Remove it with its undo data. Raises SessionNotFound, SessionBusy."""
        raise NotImplementedError

    def prune(self) -> int:
        """Remove sessions older than `keep_days`; the number removed."""
        raise NotImplementedError
