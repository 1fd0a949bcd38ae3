"""The file of one session, open for one writer.

Each record is written through as it happens, so that what was shown survives the process. A file that cannot be written
(a full disk, a home that is read-only) costs the record, never the answer.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from lyma_server.agent.record import (
    EditRecord,
    dropped_record,
    edit_record,
    event_record,
    line,
    message_of,
    message_record,
    records,
    turn_record,
    undone_record,
)
from lyma_server.agent.replay import missing_end
from lyma_server.errors import SessionBusy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import EventBody
    from lyma_server.router.chat import Message

WRITE = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class SessionLog:
    """A session that is being written. `failure` says why it cannot be, if so."""

    def __init__(self, session: str, path: Path, descriptor: int | None, failure: str = "") -> None:
        self.session, self.path, self.failure = session, path, failure
        self.on_failure: Callable[[str], None] = lambda _reason: None
        self._descriptor = descriptor

    @property
    def undo_folder(self) -> Path:
        """Where the bytes are kept that undo the edits of this session."""
        return undo_folder_of(self.path)

    def messages(self) -> list[Message]:
        """The conversation so far. What cannot be read is left out."""
        found = []
        for record in records(self._data(), "message"):
            try:
                found.append(message_of(record))
            except (KeyError, TypeError, AttributeError):
                continue
        return found

    def begin_turn(self, turn: str, at: str) -> None:
        self.append(turn_record(turn, at))

    def keep_message(self, message: Message) -> None:
        self.append(message_record(message))

    def keep_event(self, turn: str, body: EventBody) -> None:
        self.append(event_record(turn, body))

    def keep_edit(self, edit: EditRecord) -> None:
        self.append(edit_record(edit))

    def drop_edit(self, edit: EditRecord) -> None:
        """Take back an edit that was kept and then not made."""
        self.append(dropped_record(edit))

    def keep_undone(self, turn: str) -> None:
        self.append(undone_record(turn))

    def append(self, record: dict[str, Json]) -> None:
        """Write one record through, or stop keeping any and say so once."""
        self.append_lines(line(record))

    def append_lines(self, lines: bytes) -> None:
        """The same for whole lines. What is left of one that did not fit is cut off by the next writer."""
        if self._descriptor is None:
            return
        failure = _written(self._descriptor, lines)
        if failure:
            self.close()
            self.failure = failure
            self.on_failure(failure)

    def mend(self) -> None:
        """Cut off a line that was not finished, and end a turn that was not: its process died."""
        if self._descriptor is None:
            return
        data = self._data()
        if data and not data.endswith(b"\n"):
            os.ftruncate(self._descriptor, data.rfind(b"\n") + 1)
        turn, endings = missing_end(data) or ("", [])
        for body in endings:
            self.keep_event(turn, body)

    def close(self) -> None:
        """Give up the lock; any number of times."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _data(self) -> bytes:
        return b"" if self._descriptor is None else self.path.read_bytes()


def _written(descriptor: int, data: bytes) -> str:
    """Write `data`; why that failed, if it did."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        return error.strerror or str(error)
    return ""


def undo_folder_of(path: Path) -> Path:
    return path.with_suffix(".undo")


def create_log(path: Path, header: dict[str, Json]) -> SessionLog:
    """A new session's file, 0600; one that cannot be created keeps nothing and has its `failure` set."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, WRITE | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return SessionLog(path.stem, path, None, error.strerror or str(error))
    log = SessionLog(path.stem, path, descriptor)
    log.append(header)
    if log.failure:  # on a full disk a file can be made and not written: nobody could ever read it
        path.unlink(missing_ok=True)
    return log


def open_log(path: Path, busy_with: str | None) -> SessionLog:
    """Open a session's file for writing. Raises FileNotFoundError, SessionBusy; `busy_with` is its turn, where known."""
    descriptor = os.open(path, WRITE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        busy = SessionBusy(f"Session {path.stem} is at work; wait for its answer or stop it first.", turn=busy_with)
        raise busy from None
    log = SessionLog(path.stem, path, descriptor)
    log.mend()
    return log


def is_locked(path: Path) -> bool:
    """Whether somebody is writing to the session, perhaps another process."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
