"""The tools that change files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.agent.bounds import relative, writable_file
from lyma_server.agent.diff import counts, unified
from lyma_server.agent.edits import ChangedFile
from lyma_server.agent.lines import line_end, with_line_end
from lyma_server.agent.ports import FileChange, FileMissing, Question
from lyma_server.agent.tools.base import Tool, arguments, text
from lyma_server.agent.tools.hunks import Hunk, replace
from lyma_server.errors import LymaError, ToolError
from lyma_server.protocol.events import ItemCompleted, ItemStarted
from lyma_server.protocol.items import EditItem

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from lyma_server.agent.ports import FileText
    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.protocol.base import Json

GRACE_S = 1.0
"""How long a change that has begun may go on after a stop."""


@frozen
class FileEdit:
    """One file before and after; null where there is none."""

    path: Path
    before: FileText | None
    after: str | None

    def diff(self, box: Toolbox) -> str:
        """The edit as a unified diff."""
        before = self.before.text if self.before else None
        return unified(relative(self.path, box.bounds.root), before, self.after)


async def edit_file(given: dict[str, Json], box: Toolbox) -> str:
    path = writable_file(given["path"], box.bounds)
    hunks = [Hunk(each["old_text"], each["new_text"]) for each in given["edits"]]
    refuse_mark(box, *(part for hunk in hunks for part in (hunk.old, hunk.new)))
    before = await box.workspace.read(path)
    return await make_edit(FileEdit(path, before, replace(before.text, hunks)), box)


async def write_file(given: dict[str, Json], box: Toolbox) -> str:
    path = writable_file(given["path"], box.bounds)
    refuse_mark(box, given["text"])
    before = await _existing(path, box)
    after = with_line_end(given["text"], line_end(before.text)) if before and before.text else given["text"]
    return await make_edit(FileEdit(path, before, after), box)


async def delete_file(given: dict[str, Json], box: Toolbox) -> str:
    path = writable_file(given["path"], box.bounds)
    return await make_edit(FileEdit(path, await box.workspace.read(path), None), box)


def refuse_mark(box: Toolbox, *texts: str) -> None:
    """What the model saw is not what the file holds there, so what it writes would destroy a secret."""
    if any(box.redactor.mark in each for each in texts):
        raise ToolError(
            f"The text holds {box.redactor.mark}, which stands for a secret that you cannot see; leave that part out of the edit."
        )


async def _existing(path: Path, box: Toolbox) -> FileText | None:
    try:
        return await box.workspace.read(path)
    except FileMissing:
        return None


async def make_edit(edit: FileEdit, box: Toolbox) -> str:
    """Show the change, ask where the settings want it, make it, and tell how it went. Raises ToolError, EditConflict."""
    name, uri = relative(edit.path, box.bounds.root), box.workspace.uri(edit.path)
    before = edit.before.text if edit.before else None
    if before == edit.after:
        return f"{name} already is like that; nothing was changed."
    diff = edit.diff(box)
    item = EditItem(id=box.new_item(), call=box.call, path=name, uri=uri, diff=diff)
    box.emit(ItemStarted(item=item))
    applied = False
    try:
        await _ask(edit, name, diff, box)
        await _uncut(_apply(edit, ChangedFile(name, uri, before, edit.after), box))
        applied = True
    finally:
        applied = applied or _was_made(edit, box)
        made = EditItem(id=item.id, call=item.call, path=name, uri=uri, diff=diff, applied=applied)
        box.emit(ItemCompleted(item=made))
    added, removed = counts(diff)
    return f"{name} was {_deed(edit)}: {added} lines added, {removed} removed."


async def _ask(edit: FileEdit, name: str, diff: str, box: Toolbox) -> None:
    if not _needs_consent(box) or box.workspace.confirms(edit.path):
        return
    question = Question("edit", f"Change {name}?", box.redactor.redact(diff))
    if await box.person.confirm(question) is not True:
        raise ToolError(f"The person did not agree to this change of {name}; ask what they want instead.")


def _needs_consent(box: Toolbox) -> bool:
    return box.settings.confirm in {"edits", "all"}


async def _apply(edit: FileEdit, changed: ChangedFile, box: Toolbox) -> None:
    encoding = edit.before.encoding if edit.before else "utf-8"
    kept = box.edits.keep_before(edit.path, changed.before, edit.after, encoding)
    base = edit.before.base if edit.before else None
    try:
        await box.workspace.apply(FileChange(edit.path, edit.after, base, confirm=_needs_consent(box)))
    except LymaError as error:
        if not error.data.get("applied"):
            box.edits.drop(kept)
        raise
    box.edits.add(edit.path, changed)


async def _uncut(work: Coroutine[None, None, None]) -> None:
    """Do `work`; where the turn is stopped meanwhile, let it end within the grace before the stop goes on."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        _, late = await asyncio.wait({task}, timeout=GRACE_S)
        for each in late:
            each.cancel()
        if not late and not task.cancelled():
            task.exception()  # it was asked for, so that nobody is told of it at the end of the process
        raise


def _was_made(edit: FileEdit, box: Toolbox) -> bool:
    known = box.edits.files.get(edit.path)
    return known is not None and known.after == edit.after


def _deed(edit: FileEdit) -> str:
    if edit.after is None:
        return "deleted"
    return "written" if edit.before is None else "changed"


PATH = text("The file, relative to the workspace or absolute.")
EDIT_FILE = Tool(
    "edit_file",
    "Change parts of an existing text file. Each old_text must stand in the file exactly once, as the file is now; give it "
    "with enough lines around it. All edits of a call are made together, or none.",
    arguments(
        {
            "path": PATH,
            "edits": {
                "type": "array",
                "minItems": 1,
                "items": arguments(
                    {
                        "old_text": text("The exact text to replace, with its indentation."),
                        "new_text": text("What to put in its place; empty to remove it."),
                    }
                ),
            },
        }
    ),
    edit_file,
)
WRITE_FILE = Tool(
    "write_file",
    "Write a whole text file: a new one, or in place of what it holds. To change parts of a file use edit_file.",
    arguments({"path": PATH, "text": text("The whole new text.")}),
    write_file,
)
DELETE_FILE = Tool("delete_file", "Delete a text file. It can be undone.", arguments({"path": PATH}), delete_file)
