"""Undoes the edits of a turn and shows them: closed files byte for byte, open ones through the editor.

A file that was changed since stands in the way: then nothing at all is put back, unless the person says that the rest
should be. A turn that is undone is not undone again by a call that names no turn, so that one may go back step by step.
"""

from __future__ import annotations

import asyncio
import os
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.agent.bounds import relative
from lyma_server.agent.diff import unified
from lyma_server.agent.encoding import decoded
from lyma_server.agent.lines import same_lines
from lyma_server.agent.ports import FileChange
from lyma_server.agent.session import same_address
from lyma_server.agent.undo import CHANGED_SINCE, Undone, by_file, undo_file
from lyma_server.errors import EditConflict, LymaError, ToolError, UsageError
from lyma_server.router.chat import Message, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lyma_server.agent.ports import FileText, Workspace
    from lyma_server.agent.record import EditRecord
    from lyma_server.agent.session import SessionStore
    from lyma_server.agent.undo import UndoFolder

SHORTEST_ENDING = 4
"""Characters of a turn's id that name it, from its end: ids of one day begin alike."""


@frozen
class Edited:
    """A turn that changed files, with the edits of each."""

    session: str
    turn: str
    edits: tuple[EditRecord, ...]
    undone: bool = False


def find_turn(store: SessionStore, named: str | None, *, session: str | None = None, root: str | None = None) -> Edited:
    """The turn whose id is or ends with `named`; without a name, the last one that changed files and was not undone.

    It is looked for in `session`, or else in the sessions of the workspace whose URI is `root`. Raises UsageError, SessionNotFound.
    """
    sessions = (
        [session] if session is not None else [info.session for info in store.list() if same_address(info.root, root)]
    )
    turns = _by_time(turns_of(store, each) for each in sessions)
    if named is None:
        open_turns = [found for found in turns if not found.undone]
        if not open_turns:
            where = "this folder" if session is None else "this session"
            raise UsageError(f"No turn in {where} has changed a file that could be put back.")
        return open_turns[-1]
    fitting = [found for found in turns if found.turn == named or _ends(found.turn, named)]
    if len(fitting) != 1:
        many = "Several turns end" if fitting else "No turn that changed files ends"
        raise UsageError(f"{many} with {named[:40]}; `lyma sessions show` lists them.")
    return fitting[0]


def turns_of(store: SessionStore, session: str) -> tuple[Edited, ...]:
    """The turns of a session that changed files, the first one first. Raises SessionNotFound."""
    undone = store.undone(session)
    return tuple(Edited(session, turn, edits, turn in undone) for turn, edits in store.edits(session).items())


async def undo_turn(store: SessionStore, found: Edited, workspace: Workspace, *, partial: bool) -> tuple[Undone, ...]:
    """Put back what the turn changed; the model learns of it with the next prompt.

    Raises EditConflict where a file was changed since and `partial` is not set: then nothing is touched.
    """
    with store.hold(found.session) as log:
        undo = store.undo_folder(found.session)
        files = [(path, await _open_text(path, workspace), edits) for path, edits in by_file(found.edits).items()]
        if not partial:
            _refuse([await _undo(path, text, edits, undo, None) for path, text, edits in files], workspace)
        done = tuple([await _undo(path, text, edits, undo, workspace) for path, text, edits in files])
        if all(each.outcome != "kept" for each in done) or partial:
            log.keep_undone(found.turn)
        if changed := [each.path for each in done if each.outcome in {"restored", "removed"}]:
            log.keep_message(_news(changed, workspace.root))
    return done


def turn_diff(store: SessionStore, found: Edited, root: Path | None) -> str:
    """What the turn changed as one unified diff, from before its first edit of each file to after its last.

    Blocks. Raises LymaError where the bytes that were kept cannot be read.
    """
    undo = store.undo_folder(found.session)
    parts = []
    for path, edits in by_file(found.edits).items():
        before, after = (_kept_text(undo, name) for name in (edits[0].before, edits[-1].after))
        if before != after:
            parts.append(unified(relative(path, root or Path("/")), before, after))
    return "".join(parts)


def _by_time(sessions: Iterable[Sequence[Edited]]) -> list[Edited]:
    """The turns of several sessions, the latest last. Ids sort by their time, but the order within a session is certain:
    a clock that was set back does not make a turn older than the one before it.
    """
    timed = [
        (moment, found)
        for turns in sessions
        for found, moment in zip(turns, accumulate((each.turn for each in turns), max), strict=True)
    ]
    return [found for _, found in sorted(timed, key=itemgetter(0))]


def _ends(turn: str, named: str) -> bool:
    return len(named) >= SHORTEST_ENDING and turn.endswith(named)


def _kept_text(undo: UndoFolder, name: str | None) -> str | None:
    if name is None:
        return None
    try:
        found = decoded(undo.content(name))
    except (OSError, ValueError) as error:
        raise LymaError(f"What was kept of this turn cannot be read: {error}.") from error
    return "" if found is None else found[0]


async def _open_text(path: Path, workspace: Workspace) -> FileText | None:
    """The text that the editor shows of a file; null where it is not open there."""
    try:
        text = await workspace.read(path)
    except ToolError:
        return None
    return text if text.from_editor else None


async def _undo(
    path: Path, text: FileText | None, edits: Sequence[EditRecord], undo: UndoFolder, workspace: Workspace | None
) -> Undone:
    """Put one file back; without a workspace only say what would become of it. A file that was deleted while it was open is
    still shown as it was, and is missed on the disk alone.
    """
    if text is None:
        return await asyncio.to_thread(undo_file, path, edits, undo, rehearse=workspace is None)
    found, before = await asyncio.to_thread(_judge_open, path, text, edits, undo)
    if found.outcome == "unchanged" and not await asyncio.to_thread(os.path.lexists, path):
        return await asyncio.to_thread(undo_file, path, edits, undo, rehearse=workspace is None)
    if workspace is None or found.outcome not in {"restored", "removed"}:
        return found
    try:
        await workspace.apply(FileChange(path, before, text.base))
    except LymaError as error:
        return Undone(path, "kept", error.message)
    return found


def _judge_open(path: Path, text: FileText, edits: Sequence[EditRecord], undo: UndoFolder) -> tuple[Undone, str | None]:
    """What is to become of an open file, and its text from before. Editors show neither the encoding nor the last line end."""
    try:
        before = _kept_text(undo, edits[0].before)
        if before is not None and same_lines(before, text.text):
            return Undone(path, "unchanged"), before
        if not any(
            same_lines(after, text.text) for edit in edits if (after := _kept_text(undo, edit.after)) is not None
        ):
            return Undone(path, "kept", CHANGED_SINCE), before
        return Undone(path, "removed" if before is None else "restored"), before
    except LymaError as error:
        return Undone(path, "kept", error.message), None


def _refuse(rehearsed: Sequence[Undone], workspace: Workspace) -> None:
    kept = [each for each in rehearsed if each.outcome == "kept"]
    if kept:
        names = ", ".join(each.path.name for each in kept[:5]) + ("" if len(kept) <= 5 else ", …")
        raise EditConflict(
            f"Nothing was undone, for {names} cannot be put back: {kept[0].reason} Ask for a partial undo to put the others back.",
            files=[{"uri": workspace.uri(each.path), "reason": each.reason} for each in kept],
        )


def _news(changed: Sequence[Path], root: Path | None) -> Message:
    names = ", ".join(relative(path, root or Path("/")) for path in changed)
    return Message("user", (Text(f"[The person has undone what you changed in: {names}. Read these files again.]"),))
