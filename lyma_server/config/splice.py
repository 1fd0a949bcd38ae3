"""Ways to write a change into the text of a TOML file. Each is a proposal: whoever takes one must parse it first.

Proposals come best first. Paths are those of the parsed file; values are plain TOML ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lyma_server.config import places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.config.places import Path


def with_value(text: str, path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Propose texts in which the setting at `path` has `value`, be it there already or not."""
    span = places.value_span(text, path)
    if span is not None:
        yield text[: span[0]] + toml_text(value) + text[span[1] :]
    else:
        line = f"{path[-1]} = {toml_text(value)}"
        end = places.end_of_table(text, path[:-1])
        if end is not None:
            yield _with_line(text, end[0], f"{end[1]}{line}")
        yield _with_line(text, len(text), _header(text, path[:-1]) + _newline(text) + line)
    yield from _by_parser(text, path, value)


def with_element(text: str, path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Propose texts in which the list at `path`, which has elements, ends with `value`."""
    elements = places.elements_of(text, path)
    if not elements:
        yield from _with_table(text, path, value)
        return
    start, end = elements[-1]
    entry = toml_text(value)
    indent, rest, line_end = _surroundings(text, start, end)
    if not indent.strip():
        comma = rest.lstrip().startswith(",")
        between = text[end:line_end] if comma else f",{text[end:line_end]}"
        line = _newline(text) + indent + entry + ("," if comma else "")
        yield text[:end] + between + line + text[line_end:]
    yield f"{text[:end]}, {entry}{text[end:]}"


def without_element(text: str, path: tuple[str, ...], position: int) -> Iterator[str]:
    """Propose texts in which the list at `path` lacks the element at `position`, counted from 0."""
    elements = places.elements_of(text, path)
    if not elements:
        yield from _without_table(text, (*path, position))
        return
    start, end = elements[position]
    indent, rest, line_end = _surroundings(text, start, end)
    if not indent.strip() and re.fullmatch(r"\s*,?[ \t]*(#[^\r\n]*)?\r?", rest):
        yield text[: start - len(indent)] + text[line_end:].removeprefix("\r").removeprefix("\n")
    if position + 1 < len(elements):
        yield text[:start] + text[elements[position + 1][0] :]
    elif position > 0:
        yield text[: elements[position - 1][1]] + text[end:]
    yield text[:start] + re.sub(r"\A\s*,", "", text[end:])


def toml_text(value: Any) -> str:
    """Write a plain value as TOML on one line."""
    import tomlkit

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml_text(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    return str(tomlkit.item(value).as_string())


def _with_table(text: str, path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Propose another `[[table]]` after the last one at `path`."""
    position = 0
    while places.start_of(text, (*path, position)) is not None:
        position += 1
    end = places.end_of_table(text, (*path, position - 1)) if position else None
    lines = [f"[{_header_name(path, brackets=2)}]", *(f"{name} = {toml_text(each)}" for name, each in value.items())]
    if end is not None:
        yield _with_line(text, end[0], _newline(text) + _newline(text).join(lines))


def _without_table(text: str, path: Path) -> Iterator[str]:
    start, end = places.start_of(text, path), places.end_of_table(text, path)
    if start is not None and end is not None:
        yield text[:start] + text[end[0] :]


def _by_parser(text: str, path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Propose what tomlkit makes of it, for tables that are written inline or with dots."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for step in path[:-1]:
            table = table.setdefault(step, tomlkit.table())
        table[path[-1]] = value
        yield document.as_string()
    except (TOMLKitError, LookupError, TypeError, AttributeError):
        return


def _surroundings(text: str, start: int, end: int) -> tuple[str, str, int]:
    """Return what stands on the line before `start` and after `end`, and where the line ends (before its break)."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    line_end -= text[line_end - 1] == "\r"
    return text[line_start:start], text[end:line_end], line_end


def _with_line(text: str, offset: int, line: str) -> str:
    newline = _newline(text)
    before = text[:offset] if not offset or text[offset - 1] == "\n" else text[:offset] + newline
    return before + line + newline + text[offset:]


def _header(text: str, path: tuple[str, ...]) -> str:
    return (_newline(text) if text.strip() else "") + f"[{_header_name(path, brackets=1)}]"


def _header_name(path: tuple[str, ...], *, brackets: int) -> str:
    name = ".".join(path)
    return name if brackets == 1 else f"[{name}]"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
