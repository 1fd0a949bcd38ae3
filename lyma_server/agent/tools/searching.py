"""The tools that look through folders."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from lyma_server.agent.bounds import readable_file, readable_folder, relative
from lyma_server.agent.tools.base import Tool, arguments, text
from lyma_server.agent.tools.finding import Wanted, find_files, find_matches

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.protocol.base import Json

MOST_FILES = 1000
MOST_MATCHES = 200
LARGEST_RESULT = 65_536
"""Characters."""


async def list_files(given: dict[str, Json], box: Toolbox) -> str:
    named = given.get("path", ".")
    folder = readable_folder(named, box.bounds)
    found = await find_files(Wanted(folder, box.bounds.root, glob=given.get("glob")))
    where = relative(folder, box.bounds.root)
    if not found:
        return f"[no files in {where}]"
    if len(found) > MOST_FILES:
        return f"[{len(found)} files in {where}, counted by folder; list one of them]\n{_counted(found)}"
    return f"[{len(found)} files in {where}]\n" + _within("\n".join(found))


async def search(given: dict[str, Json], box: Toolbox) -> str:
    folder, path = _place(given.get("path", "."), box)
    wanted = Wanted(folder, box.bounds.root, path, given["pattern"], given.get("glob"), given.get("ignore_case", False))
    found = await find_matches(wanted)
    if not found:
        return "[no matches]"
    prefix = "" if folder == box.bounds.root else f"{relative(folder, box.bounds.root)}/"
    rows = (f"{prefix}{match.path}:{match.line}: {match.text}" for match in islice(found, MOST_MATCHES))
    more = f", of which the first {MOST_MATCHES} follow; narrow the search" if len(found) > MOST_MATCHES else ""
    return f"[{len(found)} matches{more}]\n" + _within("\n".join(rows))


def _place(named: str, box: Toolbox) -> tuple[Path, str]:
    """The folder to look through, or the folder and name of the one file."""
    path = readable_file(named, box.bounds)
    return (path.parent, f"./{path.name}") if path.is_file() else (readable_folder(named, box.bounds), ".")


def _counted(found: list[str]) -> str:
    """Too many files to name: how many each folder at the top holds."""
    tops = Counter(path.split("/", 1)[0] + "/" if "/" in path else path for path in found)
    rows = [f"{top} ({count} files)" if top.endswith("/") else top for top, count in tops.items()]
    return _within("\n".join(rows[:MOST_FILES]))


def _within(shown: str) -> str:
    if len(shown) <= LARGEST_RESULT:
        return shown
    return shown[:LARGEST_RESULT].rpartition("\n")[0] + "\n[cut off here; narrow it]"


LIST_FILES = Tool(
    "list_files",
    "List the files below a folder, without those that .gitignore names.",
    arguments(
        {},
        {
            "path": text("The folder; the workspace where it is left out."),
            "glob": text("Only files like this, as *.py or src/**/*.ts."),
        },
    ),
    list_files,
)
SEARCH = Tool(
    "search",
    "Search the files on disk with a regular expression, line by line; the result names file, line and text.",
    arguments(
        {"pattern": text("The regular expression, without slashes around it.")},
        {
            "path": text("The folder or file to look through; the workspace where it is left out."),
            "glob": text("Only files like this, as *.py or src/**/*.ts."),
            "ignore_case": {"type": "boolean", "description": "Whether letter case is ignored."},
        },
    ),
    search,
)
