"""What a turn changed: told as items, summed up in its result, and kept so that it can be undone."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from attrs import define, field

from lyma_server.agent.diff import counts, unified
from lyma_server.agent.encoding import encoded
from lyma_server.agent.record import EditRecord
from lyma_server.agent.undo import UndoFolder
from lyma_server.protocol.events import EditSummary, Notice

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import Emit
    from lyma_server.agent.sessionlog import SessionLog


@define
class ChangedFile:
    """A file before the turn and as it is now; null where there was or is none."""

    name: str
    uri: str
    before: str | None
    after: str | None


@define
class EditBook:
    """The edits of one turn."""

    turn: str
    log: SessionLog
    emit: Emit
    files: dict[Path, ChangedFile] = field(factory=dict)
    _warned: bool = False

    def keep_before(self, path: Path, before: str | None, after: str | None, encoding: str) -> EditRecord | None:
        """Before the file is changed: keep what it takes to undo the change. Null where that cannot be kept."""
        undo = UndoFolder(self.log.undo_folder)
        try:
            names = [undo.keep(None if text is None else encoded(text, encoding)) for text in (before, after)]
        except (OSError, UnicodeEncodeError) as error:
            self._warn(getattr(error, "strerror", None) or str(error))
            return None
        record = EditRecord(self.turn, str(path), names[0], names[1], _mode(path))
        self.log.keep_edit(record)
        return record

    def drop(self, record: EditRecord | None) -> None:
        """The change was refused: it was never made, so there is nothing to undo."""
        if record is not None:
            self.log.drop_edit(record)

    def add(self, path: Path, changed: ChangedFile) -> None:
        """After the file was changed: count it."""
        first = self.files.get(path)
        self.files[path] = changed if first is None else ChangedFile(first.name, first.uri, first.before, changed.after)

    def summaries(self) -> tuple[EditSummary, ...]:
        """The files that are not as they were, by the order of their first change."""
        found = []
        for each in self.files.values():
            if each.before != each.after:
                added, removed = counts(unified(each.name, each.before, each.after))
                found.append(EditSummary(path=each.name, uri=each.uri, added=added, removed=removed))
        return tuple(found)

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            self.emit(Notice(text=f"Edits of this turn cannot be undone by Lyma: {reason}.", level="warning"))


def _mode(path: Path) -> int | None:
    """The permissions of a file, which a deletion takes with it."""
    try:
        return stat.S_IMODE(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return None
