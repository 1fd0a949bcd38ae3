"""The tool that reads a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.agent.bounds import readable_file, relative
from lyma_server.agent.lines import split_lines, with_line_end
from lyma_server.agent.tools.base import Tool, arguments, count, text
from lyma_server.errors import ToolError

if TYPE_CHECKING:
    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.protocol.base import Json

LARGEST_READING = 65_536
"""Characters that one call returns; the rest takes another call."""


async def read_file(given: dict[str, Json], box: Toolbox) -> str:
    path = readable_file(given["path"], box.bounds)
    file = await box.workspace.read(path)
    lines = split_lines(with_line_end(file.text, "\n"))
    first, last = given.get("first_line", 1), min(given.get("last_line", len(lines)), len(lines))
    if lines and not first <= last:
        raise ToolError(f"{given['path']} has {len(lines)} lines; there are none from {first} to {last}.")
    shown = _fitting(lines[first - 1 : last])
    last = first + len(shown) - 1
    where = f"{relative(path, box.bounds.root)}, lines {first}-{last} of {len(lines)}" if lines else "an empty file"
    unsaved = ", with changes that are not saved yet" if file.from_editor else ""
    return f"[{where}{unsaved}]\n" + _ended("".join(shown), _missing(lines, shown, last))


def _fitting(lines: list[str]) -> list[str]:
    """As many lines as may be returned; of a first line that is too long, its beginning."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > LARGEST_READING:
            return lines[:number] or [line[:LARGEST_READING]]
    return lines


def _missing(lines: list[str], shown: list[str], last: int) -> list[str]:
    cut = [f"[line {last} goes on; it is too long]"] if shown and shown[-1] != lines[last - 1] else []
    return cut + ([f"[read on from line {last + 1}]"] if last < len(lines) else [])


def _ended(shown: str, notes: list[str]) -> str:
    """Each note on a line of its own."""
    end = "" if not notes or shown.endswith("\n") else "\n"
    return shown + end + "\n".join(notes)


READ_FILE = Tool(
    "read_file",
    "Read a text file, whole or by lines. Changes that are not saved in the editor are included. The first line of the "
    "result, in brackets, says what follows; it is not part of the file.",
    arguments(
        {"path": text("The file, relative to the workspace or absolute.")},
        {
            "first_line": count("The first line to read, from 1."),
            "last_line": count("The last line to read, inclusive."),
        },
    ),
    read_file,
)
