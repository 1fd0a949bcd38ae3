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
    shown, last = _within(lines[first - 1 : last], first)
    where = f"{relative(path, box.bounds.root)}, lines {first}-{last} of {len(lines)}" if lines else "an empty file"
    unsaved = ", with changes that are not saved yet" if file.from_editor else ""
    more = "" if last == len(lines) else f"\n[read on from line {last + 1}]"
    return f"[{where}{unsaved}]\n{shown}{more}"


def _within(lines: list[str], first: int) -> tuple[str, int]:
    """As many lines as may be returned, and the number of the last one."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > LARGEST_READING:
            cut = line[:LARGEST_READING] if number == 0 else ""
            return "".join(lines[:number]) + cut, first + max(number, 1) - 1
    return "".join(lines), first + len(lines) - 1


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
