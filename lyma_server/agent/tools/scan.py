"""Looks through a folder where ripgrep is not installed. A program of its own, standard library only.

It runs as a child, since a regular expression that never ends can be stopped only by ending its process. On stdin comes
`{"pattern": null or a string, "glob": null or a string, "ignore_case": bool, "path": string}`; on stdout it writes what
ripgrep would with `--null`: `path NUL` a file, or `path NUL line:text` a match. Exit 1: nothing found; 2: a bad pattern.
"""

# ruff: noqa: PTH112, PTH113, PTH114, PTH118, PTH119, PTH123 - it starts for each search, and pathlib would double that time

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SKIPPED = {".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache"}
"""What ripgrep mostly skips by the project's .gitignore, which is not read here."""
LARGEST_FILE = 8 << 20
LONGEST_LINE = 300


def files(path: str) -> Iterator[str]:
    """The regular files at or below `path`, in order, no link followed."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            found = os.path.join(folder, name)
            if not os.path.islink(found) and os.path.isfile(found):
                yield os.path.normpath(found)


def fits(path: str, glob: str | None) -> bool:
    """As in ripgrep, a glob without a slash is for the name, in whatever folder."""
    if glob is None:
        return True
    name = path if "/" in glob else os.path.basename(path)
    return fnmatch.fnmatch(name, glob.lstrip("/").replace("**/", "*"))


def matches(path: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines of a text file that match, with their numbers."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError:
        return
    if len(data) > LARGEST_FILE or b"\0" in data:
        return
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        text = line.removesuffix("\r")
        if pattern.search(text):
            yield number, text[:LONGEST_LINE]


def main() -> int:
    wanted: dict[str, Any] = json.load(sys.stdin)
    found = (path for path in files(wanted["path"]) if fits(path, wanted["glob"]))
    out = sys.stdout.buffer
    if wanted["pattern"] is None:
        count = sum(1 for path in found if out.write(os.fsencode(path) + b"\0"))
        return 0 if count else 1
    try:
        pattern = re.compile(wanted["pattern"], re.IGNORECASE if wanted["ignore_case"] else 0)
    except re.error as error:
        sys.stderr.write(str(error))
        return 2
    count = 0
    for path in found:
        for number, text in matches(path, pattern):
            count += out.write(b"%s\0%d:%s\n" % (os.fsencode(path), number, text.encode())) > 0
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
