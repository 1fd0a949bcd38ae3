"""Where in the text of a TOML file a value stands.

No TOML parser tells, so a value's place is found by marking it in a tomlkit document, which renders byte for byte as it
was read, and looking for the mark. Slow, and only needed for errors and edits. Offsets are in characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tomlkit import TOMLDocument

Path: TypeAlias = tuple[str | int, ...]
"""Where a value is: names, and positions in lists counted from 0."""

_MARK: Final = "\ue000lyma\ue001"
"""Private-use characters: nobody's file holds them."""

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'|#[^\n]*|[\[\]{},]|[^\s\[\]{},#"\']+',
    re.DOTALL,
)


def line_of(text: str, path: Path) -> int | None:
    """Return the line (from 1) at which what stands at `path`, or the nearest thing around it, begins; null if unknown."""
    return lines_of(text, (path,))[0]


def lines_of(text: str, paths: Iterable[Path]) -> list[int | None]:
    """Return the line of each path, as `line_of` does, in little more time than for one."""
    document = _parsed(text)
    return [_line_of(document, text, path) for path in paths]


def _line_of(document: TOMLDocument | None, text: str, path: Path) -> int | None:
    for length in range(len(path), 0, -1):
        offset = _start_in(document, text, path[:length])
        if offset is not None:
            return text.count("\n", 0, offset) + 1
    return None


def start_of(text: str, path: Path) -> int | None:
    """Return where the table, the setting or the list's item at `path` begins; null if there is none."""
    return _start_in(_parsed(text), text, path)


def _start_in(document: TOMLDocument | None, text: str, path: Path) -> int | None:
    if document is None:
        return None
    if isinstance(path[-1], int):
        elements = elements_of(text, path[:-1])
        if elements:
            return elements[path[-1]][0] if path[-1] < len(elements) else None
    node = _found(document, path)
    return None if node is None else _start_of_node(document, node)


def value_span(text: str, path: Path) -> tuple[int, int] | None:
    """Return where the value of the setting at `path` begins and ends; null where that cannot be told for sure."""
    from tomlkit.items import AoT, Item, Table

    document, node = _find(text, path)
    if document is None or not isinstance(node, Item) or isinstance(node, AoT | Table):
        return None
    old = node.as_string()
    table = _at(document, path[:-1])
    table[path[-1]] = _MARK
    before, _, after = document.as_string().partition(f'"{_MARK}"')
    start, end = len(before), len(before) + len(old)
    return (start, end) if text[:start] == before and text[start:end] == old and text[end:] == after else None


def elements_of(text: str, path: Path) -> list[tuple[int, int]]:
    """Return where each item of the list at `path` begins and ends; empty where it is no list in brackets."""
    span = value_span(text, path)
    if span is None or text[span[0]] != "[":
        return []
    return list(_elements(text, *span))


def end_of_table(text: str, path: Path) -> tuple[int, str] | None:
    """Return where a line may be added to the table at `path`, and the indent of its lines; null if it has no header."""
    from tomlkit.items import AoT, Table

    document, table = _find(text, path)
    if document is None or table is None:
        return None
    if path and not (isinstance(table, Table) and not table.is_super_table()):
        return None
    body = table.value.body if path else document.body
    lines = [item for key, item in body if key is not None and not isinstance(item, Table | AoT)]
    if not lines and not path:
        return _end_of_preface(text), ""
    last = (lines or [table])[-1]
    indent, trail = last.trivia.indent, last.trivia.trail
    last.trivia.trail = _MARK + trail
    offset = document.as_string().find(_MARK)
    return None if offset < 0 else (offset + len(trail), indent if lines else "")


def _find(text: str, path: Path) -> tuple[TOMLDocument | None, Any]:
    """Parse `text` and walk to `path`; null where the parser disagrees with tomllib or there is nothing."""
    document = _parsed(text)
    return document, None if document is None else _found(document, path)


def _parsed(text: str) -> TOMLDocument | None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError):
        return None


def _found(document: TOMLDocument, path: Path) -> Any:
    from tomlkit.exceptions import TOMLKitError

    try:
        return _at(document, path)
    except (LookupError, TypeError, TOMLKitError):
        return None


def _at(document: TOMLDocument, path: Path) -> Any:
    from tomlkit.container import Container

    node: Any = document
    table = node
    for step in path:
        table, node = node, node[step]
    if isinstance(node, bool):  # tomlkit unwraps these, and only these
        container = table if isinstance(table, Container) else getattr(table, "value", None)
        return container.item(str(path[-1])) if isinstance(container, Container) else None
    return node


def _start_of_node(document: TOMLDocument, node: Any) -> int | None:
    """Mark the node or, since a table may have no line of its own, what it holds first."""
    trivia = getattr(node, "trivia", None)
    if trivia is not None:
        indent = trivia.indent
        trivia.indent = _MARK
        offset = document.as_string().find(_MARK)
        trivia.indent = indent
        if offset >= 0:
            return offset + len(indent)
    held = node.values() if hasattr(node, "values") else node if isinstance(node, list) else ()
    offsets = (_start_of_node(document, child) for child in held)
    return next((offset for offset in offsets if offset is not None), None)


def _elements(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    depth, begun, ended = 0, -1, -1
    for token in _TOKEN.finditer(text, start, end):
        word = token[0]
        if word.startswith("#"):
            continue
        closes = word in {"]", "}"}
        depth -= closes
        if begun >= 0 and ((depth == 1 and word == ",") or depth == 0):
            yield begun, ended
            begun = -1
        elif depth >= 1 and word != ",":
            begun, ended = (token.start() if begun < 0 else begun), token.end()
        depth += word in {"[", "{"}


def _end_of_preface(text: str) -> int:
    """Return where the comments that speak of the whole file end: after the last empty line before anything else."""
    preface = re.match(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*", text)
    breaks = list(re.finditer(r"^[ \t]*\r?\n", preface[0], re.MULTILINE)) if preface else []
    return breaks[-1].end() if breaks else 0


def comments_of(text: str) -> list[str]:
    """Return every comment, in order."""
    return [token[0].rstrip() for token in _TOKEN.finditer(text) if token[0].startswith("#")]
