"""What an editor tells of an agent.toml: what a setting means, what may stand at a place, what there is. Pure: text in, data out.

All that it knows comes from the classes of the specification. Lines and columns count from 0, in characters.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import attrs
from attrs import frozen

from lyma_server.config import kinds, shape
from lyma_server.editor.features.agent_lines import Line, lines_of
from lyma_server.factory.spec import PythonTool, Spec
from lyma_server.factory.spec_kinds import Constant, Several
from lyma_server.factory.spec_text import limits
from lyma_server.factory.template import toml, usual_limits
from lyma_server.factory.tool_specs import BUILTIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lyma_server.config.model import CeilingSettings

TOOL: Final = ("tools", "python")
_LEAVES: Final[Mapping[tuple[str, ...], shape.Leaf]] = {leaf.path: leaf for leaf in shape.leaves(Spec)}
_SECTIONS: Final = {part.path: part for part in shape.parts(Spec).values() if isinstance(part, shape.Section)}
_CEILINGS: Final = {path: name for path, name, _ in limits()}
_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]*")


@frozen
class Hovered:
    """A text in Markdown about what stands from `start` to `end` of the line."""

    text: str
    start: int
    end: int


@frozen
class Completion:
    """`insert` takes the place of what stands from `start` to the cursor."""

    label: str
    insert: str
    start: int
    detail: str
    kind: Literal["setting", "section", "value"]


@frozen
class Symbol:
    """A table or a setting on the lines from `first` to `last`."""

    name: str
    first: int
    last: int
    inside: tuple[Symbol, ...] = ()


@frozen
class Beside:
    """What may be named: files in the agent's folder, and compiled agents as hash and name."""

    files: tuple[str, ...] = ()
    agents: tuple[tuple[str, str], ...] = ()


def hover(text: str, line: int, column: int, ceiling: CeilingSettings) -> Hovered | None:
    """What the thing at a place means; null where that is not known."""
    lines = lines_of(text)
    if line >= len(lines):
        return None
    found = lines[line]
    start, end = found.key
    if found.kind in {"header", "setting"} and start <= column <= end:
        told = _meaning(found.path, ceiling)
        return None if told is None else Hovered(told, start, end)
    word = next((each for each in _WORD.finditer(found.text) if each.start() <= column <= each.end() and each[0]), None)
    if word is None or found.path != ("tools", "allow") or word[0] not in BUILTIN:
        return None
    return Hovered(f"**{word[0]}**: {BUILTIN[word[0]].description}", word.start(), word.end())


def _meaning(path: tuple[str, ...], ceiling: CeilingSettings) -> str | None:
    if path in _SECTIONS:
        return f"**[{'.'.join(path)}]**: {_SECTIONS[path].doc}"
    if path[:2] == TOOL and len(path) == 3:
        field = attrs.fields_dict(PythonTool).get(path[2])
        return (
            None if field is None else f"**{path[2]}**: {field.metadata['doc']} {_is(field.metadata['kind'].expected)}"
        )
    leaf = _LEAVES.get(path)
    if leaf is None:
        return None
    default = "It must be given." if leaf.default is attrs.NOTHING else f"Default: `{json.dumps(leaf.default)}`."
    most = f" At most {getattr(ceiling, _CEILINGS[path])} (`ceiling.{_CEILINGS[path]}`)." if path in _CEILINGS else ""
    return f"**{'.'.join(path)}**: {leaf.doc} {_is(leaf.kind.expected)} {default}{most}"


def _is(expected: str) -> str:
    return f"{expected[:1].upper()}{expected[1:]}."


def complete(text: str, line: int, column: int, ceiling: CeilingSettings, beside: Beside) -> tuple[Completion, ...]:
    """What may stand at a place."""
    lines = lines_of(text)
    if line >= len(lines):
        return ()
    found = lines[line]
    before = found.text[:column]
    if found.kind == "header" or before.strip().startswith("["):
        return tuple(_sections(lines, before))
    if found.kind == "more" or (found.kind == "setting" and column >= found.value):
        return tuple(_values(found, before, beside))
    return tuple(_settings(lines, found, before, ceiling))


def _sections(lines: tuple[Line, ...], before: str) -> Iterator[Completion]:
    there = {line.path for line in lines if line.kind == "header"}
    start = len(before) - len(before.lstrip())
    for path, section in _SECTIONS.items():
        if path not in there or before.lstrip("[ \t") == path[0]:
            yield Completion(f"[{path[0]}]", f"[{path[0]}]", start, section.doc, "section")
    yield Completion("[[tools.python]]", "[[tools.python]]", start, "A tool of the agent's own.", "section")


def _settings(lines: tuple[Line, ...], found: Line, before: str, ceiling: CeilingSettings) -> Iterator[Completion]:
    there = {line.path for line in lines if line.kind == "setting" and line is not found}
    start = len(before) - len(before.lstrip())
    if found.table == TOOL:
        for field in attrs.fields(PythonTool):
            yield Completion(field.name, f'{field.name} = ""', start, field.metadata["doc"], "setting")
        return
    usual = usual_limits(ceiling)
    for path, leaf in _LEAVES.items():
        if path[:-1] == found.table and path not in there:
            value = usual.get(path, leaf.default)
            yield Completion(path[-1], f"{path[-1]} = {_written(leaf, value)}", start, leaf.doc, "setting")


def _written(leaf: shape.Leaf, value: object) -> str:
    """What a new setting begins with: its usual value, or what is to be filled in."""
    if value is not attrs.NOTHING:
        return toml(value)
    if isinstance(leaf.kind, Constant):
        return leaf.kind.expected
    return "[]" if isinstance(leaf.kind, Several | kinds.ListOf) else '""'


def _values(found: Line, before: str, beside: Beside) -> Iterator[Completion]:
    word = re.search(r"[\"']?[A-Za-z0-9_.:/-]*$", before)
    start = word.start() if word else len(before)
    for value, detail in _choices(found.path, beside):
        yield Completion(value, json.dumps(value), start, detail, "value")


def _choices(path: tuple[str, ...], beside: Beside) -> Iterator[tuple[str, str]]:
    """The values that a setting may have, each with a word on it."""
    if path == ("tools", "allow"):
        yield from ((tool.name, tool.description) for tool in BUILTIN.values())
    elif path == ("delegate", "agents"):
        yield from beside.agents
    elif path[-1:] in {("file",), ("schema",)}:
        ending = ".py" if path[-1] == "file" else ".json"
        yield from ((name, "") for name in beside.files if name.endswith(ending))
    elif (leaf := _LEAVES.get(path)) is not None and isinstance(leaf.kind, kinds.Choice):
        yield from ((option, leaf.doc) for option in leaf.kind.options)


def symbols(text: str) -> tuple[Symbol, ...]:
    """The tables, with their settings inside, and what stands before the first table."""
    made: list[Symbol] = []
    lines = lines_of(text)
    starts = [number for number, line in enumerate(lines) if line.kind == "header"]
    made += _settings_in(lines, 0, starts[0] if starts else len(lines))
    for start, end in pairwise([*starts, len(lines)]):
        inside = tuple(_settings_in(lines, start + 1, end))
        last = inside[-1].last if inside else start
        made.append(Symbol(".".join(lines[start].path) or "?", start, last, inside))
    return tuple(made)


def _settings_in(lines: tuple[Line, ...], first: int, end: int) -> Iterator[Symbol]:
    begun = [number for number in range(first, end) if lines[number].kind == "setting"]
    for number in begun:
        last = number
        while last + 1 < end and lines[last + 1].kind == "more":
            last += 1
        yield Symbol(lines[number].path[-1], number, last)


def is_agent(path_parts: tuple[str, ...], text: str) -> bool:
    """Whether an agent.toml is one of Lyma's: other programs have files of that name, too."""
    if path_parts[-1:] != ("agent.toml",):
        return False
    return path_parts[-4:-2] == (".lyma", "agents") or re.search(r"^lyma_agent\b", text, re.MULTILINE) is not None
