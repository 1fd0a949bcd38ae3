"""agent.toml as text: a commented template to begin with, and a specification written out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import attrs

from lyma_server.config import shape
from lyma_server.factory.spec import Spec, as_json
from lyma_server.factory.spec_text import limits
from lyma_server.factory.versions import SPEC_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lyma_server.config.model import CeilingSettings

USUAL: Final[Mapping[tuple[str, str], int]] = {
    ("model", "max_output_tokens"): 2048,
    ("files", "max_files"): 5000,
    ("files", "max_read_bytes"): 64 << 20,
    ("files", "max_write_bytes"): 1 << 20,
    ("budget", "max_turns"): 12,
    ("budget", "max_tool_calls"): 60,
    ("budget", "max_tokens"): 200_000,
    ("budget", "max_cost_micros"): 200_000,
    ("budget", "wall_s"): 180,
    ("budget", "cpu_s"): 60,
    ("budget", "memory_mb"): 256,
    ("budget", "scratch_mb"): 16,
    ("budget", "processes"): 1,
    ("output", "max_bytes"): 65_536,
}
"""Limits for a small agent that reads some files and says something about them."""

_EXAMPLE: Final[Mapping[tuple[str, ...], Any]] = {
    ("lyma_agent",): SPEC_FORMAT,
    ("purpose",): "Say in a line what it is for",
    ("instructions",): "Say what to do, step by step, and what the answer should hold.\nYou get a task as input.\n",
    ("tools", "allow"): ["fs.grep", "fs.list", "fs.read"],
    ("files", "read"): ["src/**", "README.md"],
}


def usual_limits(ceiling: CeilingSettings) -> dict[tuple[str, ...], int]:
    """The usual limits, none over the ceiling."""
    return {path: min(USUAL[path], getattr(ceiling, name)) for path, name, _ in limits()}


def template(name: str, ceiling: CeilingSettings) -> str:
    """A commented agent.toml that compiles as it is."""
    values: dict[tuple[str, ...], Any] = {**_EXAMPLE, **usual_limits(ceiling), ("name",): name}
    return (
        "\n".join(
            [f"# The agent {name}. `lyma compile-agent` checks it; each setting may be changed.", *_lines(values)]
        )
        + "\n"
    )


def written(spec: Spec) -> str:
    """A specification as the text of an agent.toml, which means the same."""
    values = dict(_values(as_json(spec), ()))
    return "\n".join(_lines(values, comments=False)) + "\n"


def _values(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _values(value, (*path, name))
        else:
            yield (*path, name), value


def _lines(values: Mapping[tuple[str, ...], Any], *, comments: bool = True) -> Iterator[str]:
    """The lines of the whole file; settings without a value of their own show their default."""
    parts = shape.parts(Spec).values()
    for leaf in (part for part in parts if isinstance(part, shape.Leaf)):
        yield _line(leaf, values, comments=comments)
    for section in (part for part in parts if isinstance(part, shape.Section)):
        yield f"\n[{section.path[0]}]" + (f"  # {section.doc}" if comments else "")
        for leaf in shape.leaves(section.cls, section.path):
            yield _line(leaf, values, comments=comments)


def _line(leaf: shape.Leaf, values: Mapping[tuple[str, ...], Any], *, comments: bool) -> str:
    value = values.get(leaf.path, () if leaf.default is attrs.NOTHING else leaf.default)
    line = f"{leaf.path[-1]} = {toml(value)}"
    if not comments:
        return line
    return f"# {leaf.doc}\n{line}" if "\n" in line else f"{line}  # {leaf.doc}"


def toml(value: Any) -> str:
    """A plain value as TOML; a text with several lines keeps them."""
    if isinstance(value, str):
        return _lines_of_text(value) if "\n" in value else _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: str) -> str:
    """JSON's escapes are TOML's, too, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines_of_text(value: str) -> str:
    body = "\n".join(_text(line)[1:-1] for line in value.split("\n"))
    return f'"""\n{body}"""'
