"""Sessions on disk: one JSONL file each, which holds the conversation and the events to replay."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from lyma_server.agent.identifiers import is_identifier, new_identifier
from lyma_server.agent.record import EditRecord, edits_in, records, session_record, undone_in
from lyma_server.agent.replay import replayed, replayed_json
from lyma_server.agent.sessionlog import create_log, is_locked, open_log, undo_folder_of
from lyma_server.agent.undo import UndoFolder
from lyma_server.errors import SessionBusy, SessionNotFound
from lyma_server.protocol.messages import SessionInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lyma_server.agent.sessionlog import SessionLog
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.events import Event

TITLE_LENGTH = 72
DAY_S = 86_400
LARGEST_JUMP_S = 3600
"""A clock that went so much further than the time that has passed says nothing of how old a session is."""
DROPPED_BY_FORK = (b'{"type":"session"', b'{"type":"edit"', b'{"type":"dropped"', b'{"type":"undone"')


class SessionStore:
    """The folder of sessions, `sessions/` in Lyma's home. `keep_days` is how long a session is kept."""

    def __init__(self, folder: Path, keep_days: int = 90) -> None:
        self.folder = folder
        self.keep_days = keep_days
        self._active: dict[str, str] = {}
        self._pruned = False
        self._began = (time.time(), time.monotonic())

    def list(self) -> tuple[SessionInfo, ...]:
        """All of them, the latest first. A file that cannot be read is left out."""
        found = [info for path in self._files() if (info := _info(path))]
        return tuple(sorted(found, key=lambda info: info.updated, reverse=True))

    def latest(self, root: str | None = None) -> str | None:
        """The id of the session that was used last, in the workspace whose URI is `root` where given."""
        return next((info.session for info in self.list() if root is None or same_address(info.root, root)), None)

    def begin(self, turn: str, session: str | None, *, root: str | None, title: str) -> SessionLog:
        """Open a session for a turn, or a new one where `session` is null; `root` and `title` are for a new one.

        Raises SessionNotFound, SessionBusy.
        """
        log = self._create(root, title) if session is None else self._open(session)
        self._active[log.session] = turn
        log.begin_turn(turn, rfc3339(time.time()))
        return log

    def end(self, log: SessionLog) -> None:
        """Close what `begin` opened. The first time in a process, also remove sessions that are too old, unless the clock
        jumped meanwhile: then all of them may seem so.
        """
        self._active.pop(log.session, None)
        log.close()
        wall, steady = self._began
        jumped = abs((time.time() - wall) - (time.monotonic() - steady)) > LARGEST_JUMP_S
        if not self._pruned and not jumped:
            self._pruned = True
            self.prune()

    def replay(self, session: str) -> Iterator[Event]:
        """The events of all its turns with `replay` set, numbered anew. Raises SessionNotFound."""
        path = self._path(session)
        return replayed(session, path.read_bytes(), under_way=is_locked(path))

    def replay_json(self, session: str) -> Iterator[Json]:
        """The same as they are on the wire. Raises SessionNotFound."""
        path = self._path(session)
        return replayed_json(session, path.read_bytes(), under_way=is_locked(path))

    def edits(self, session: str) -> dict[str, tuple[EditRecord, ...]]:
        """The edits of each turn that made any, the first turn first. Raises SessionNotFound."""
        turns: dict[str, tuple[EditRecord, ...]] = {}
        for edit in edits_in(self._path(session).read_bytes()):
            turns[edit.turn] = (*turns.get(edit.turn, ()), edit)
        return turns

    def undone(self, session: str) -> frozenset[str]:
        """The turns whose edits were undone. Raises SessionNotFound."""
        return undone_in(self._path(session).read_bytes())

    @contextmanager
    def hold(self, session: str) -> Iterator[SessionLog]:
        """Keep turns out of a session while its files are put back. Raises SessionNotFound, SessionBusy."""
        log = self._open(session)
        try:
            yield log
        finally:
            log.close()

    def info(self, session: str) -> SessionInfo:
        """One session. Raises SessionNotFound."""
        info = _info(self._path(session))
        if info is None:
            raise _unknown(session)
        return info

    def undo_folder(self, session: str) -> UndoFolder:
        """What is kept to undo them. Raises SessionNotFound."""
        return UndoFolder(undo_folder_of(self._path(session)))

    def fork(self, session: str) -> SessionInfo:
        """A new session that begins with the same conversation. Raises SessionNotFound."""
        data = self._path(session).read_bytes()
        header: Json = next(records(data, "session"), {})
        log = self._create(header.get("root"), header.get("title", ""), parent=session)
        kept = [each for each in data.split(b"\n")[:-1] if not each.startswith(DROPPED_BY_FORK)]
        log.append_lines(b"".join(each + b"\n" for each in kept))
        log.close()
        info = _info(log.path)
        if info is None:
            raise SessionNotFound(
                f"Session {session} could not be copied: {log.failure}. Is there room in {self.folder}?"
            )
        return info

    def delete(self, session: str) -> None:
        """Remove it with its undo data. Raises SessionNotFound, SessionBusy."""
        log = self._open(session)
        log.path.unlink(missing_ok=True)
        shutil.rmtree(log.undo_folder, ignore_errors=True)
        log.close()

    def prune(self, keep_days: int | None = None) -> int:
        """Remove sessions that nobody has used for so many days, by default the store's own; the number removed."""
        oldest = time.time() - (self.keep_days if keep_days is None else keep_days) * DAY_S
        removed = 0
        for path in self._files():
            try:
                if path.stat().st_mtime < oldest:
                    self.delete(path.stem)
                    removed += 1
            except (OSError, SessionBusy, SessionNotFound):
                continue
        return removed

    def _create(self, root: str | None, title: str, parent: str | None = None) -> SessionLog:
        identity = new_identifier()
        title, created = shortened(title), rfc3339(time.time())
        header = session_record(identity, created=created, root=root, title=title, parent=parent)
        return create_log(self._named(identity), header)

    def _open(self, session: str) -> SessionLog:
        try:
            return open_log(self._path(session), self._active.get(session))
        except FileNotFoundError:
            raise _unknown(session) from None

    def _path(self, session: str) -> Path:
        path = self._named(session)
        if not is_identifier(session) or not path.is_file():
            raise _unknown(session)
        return path

    def _named(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def _files(self) -> Iterator[Path]:
        return (path for path in self.folder.glob("*.jsonl") if is_identifier(path.stem))


def _unknown(session: str) -> SessionNotFound:
    return SessionNotFound(f"There is no session {session[:40]}; `lyma sessions` lists those of a folder.")


def _info(path: Path) -> SessionInfo | None:
    try:
        data, facts = path.read_bytes(), path.stat()
    except OSError:
        return None
    header: Json = next(records(data, "session"), None)
    if header is None:
        return None
    return SessionInfo(
        session=path.stem,
        title=str(header.get("title", "")),
        root=header.get("root"),
        created=str(header.get("created", "")),
        updated=rfc3339(facts.st_mtime),
        turns=data.count(b'\n{"type":"turn"'),
    )


def shortened(prompt: str) -> str:
    """The first line of a prompt with words in it, as the title of its session."""
    first = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return first if len(first) <= TITLE_LENGTH else first[: TITLE_LENGTH - 1].rstrip() + "…"


def same_address(one: str | None, other: str | None) -> bool:
    """Whether two URIs are the same, whichever characters they write with percent signs: editors and Python differ."""
    return one == other or (one is not None and other is not None and unquote_to_bytes(one) == unquote_to_bytes(other))


def rfc3339(moment: float) -> str:
    """Seconds since the epoch as a UTC time with milliseconds, which sorts as text."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
