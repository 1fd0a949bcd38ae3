"""The tools for files: they read the copies in /in, and what was written before. What is written is only kept here."""

from __future__ import annotations

import os
import re
from pathlib import Path

TYPE_CHECKING = False  # to load typing would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

INPUT: Final = Path("/in")
MOST_LISTED: Final = 2_000
MOST_MATCHES: Final = 200
LONGEST_LINE: Final = 400
"""Characters of a line that a search shows."""


class ToolFault(Exception):
    """A tool could not do what the model asked; the message is for the model."""


class Files:
    """The files as the agent sees them. `changed` are those that it has written, by relative path."""

    def __init__(self, writable: list[str], root: Path = INPUT) -> None:
        self.changed: dict[str, str] = {}
        self._writable = writable
        self._root = root

    @property
    def tools(self) -> dict[str, Callable[[dict[str, Any]], str]]:
        return {"fs.list": self.list, "fs.read": self.read, "fs.grep": self.grep, "fs.write": self.write}

    def list(self, arguments: dict[str, Any]) -> str:
        found = list(self._paths(arguments.get("glob")))
        shown = found[:MOST_LISTED]
        rest = [f"[{len(found) - len(shown)} more; name a narrower glob]"] if len(found) > len(shown) else []
        return "\n".join([*shown, *rest]) or "[no files]"

    def read(self, arguments: dict[str, Any]) -> str:
        path = arguments["path"]
        lines = self._text(path).splitlines()
        first, last = arguments.get("first", 1), arguments.get("last", len(lines))
        if lines and first > len(lines):
            raise ToolFault(f"{path} has {len(lines)} lines.")
        return "\n".join(f"{at}\t{lines[at - 1]}" for at in range(first, min(last, len(lines)) + 1)) or "[no lines]"

    def grep(self, arguments: dict[str, Any]) -> str:
        try:
            pattern = re.compile(arguments["pattern"])
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolFault(f"That is no regular expression: {error}.") from None
        found: list[str] = []
        for path, at, line in self._lines(arguments.get("glob")):
            if pattern.search(line):
                if len(found) == MOST_MATCHES:
                    found.append("[and more; search for less]")
                    break
                found.append(f"{path}:{at}:{line[:LONGEST_LINE]}")
        return "\n".join(found) or "[no matches]"

    def write(self, arguments: dict[str, Any]) -> str:
        from lyma_server.factory.globs import is_allowed

        path, text = arguments["path"], arguments["text"]
        if not is_allowed(path, self._writable, writing=True):
            raise ToolFault(f"You may not write {path}; you may write {', '.join(self._writable) or 'nothing'}.")
        self.changed[path] = text
        return f"{path} was written, {len(text.encode())} bytes."

    def _lines(self, glob: str | None) -> Iterator[tuple[str, int, str]]:
        for path in self._paths(glob):
            try:
                text = self._text(path)
            except ToolFault:
                continue
            for at, line in enumerate(text.splitlines(), 1):
                yield path, at, line

    def _paths(self, glob: str | None) -> Iterator[str]:
        """All relative paths, sorted, or those that a glob names."""
        here = {os.path.relpath(Path(folder, name), self._root) for folder, _, names in os.walk(self._root) for name in names}  # fmt: skip
        paths = sorted(here | self.changed.keys())
        if glob is None:
            return iter(paths)
        from lyma_server.factory.globs import is_allowed

        return (path for path in paths if is_allowed(path, (glob,), writing=False))

    def _text(self, path: str) -> str:
        if path in self.changed:
            return self.changed[path]
        try:
            if ".." in path.split("/") or path.startswith("/"):
                raise FileNotFoundError
            return (self._root / path).read_bytes().decode()
        except UnicodeDecodeError:
            raise ToolFault(f"{path} is no text in UTF-8.") from None
        except (OSError, ValueError):
            raise ToolFault(f"There is no file {path} that you may read; fs.list names those.") from None
