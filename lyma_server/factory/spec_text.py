"""From the text of agent.toml to a specification, or to all that is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config import shape
from lyma_server.config.file import parse, read_section
from lyma_server.config.load import build
from lyma_server.config.mistakes import Mistake
from lyma_server.errors import ConfigError
from lyma_server.factory.canonical import LARGEST_INTEGER
from lyma_server.factory.characters import find_hidden, normal
from lyma_server.factory.diagnostic import SPEC_FILE
from lyma_server.factory.leaks import find_leak
from lyma_server.factory.spec import DelegatePart, Spec
from lyma_server.factory.versions import LARGEST_DEPTH, MOST_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.config.model import CeilingSettings
    from lyma_server.config.places import Path as SettingPath
    from lyma_server.protocol.base import Json

LARGEST_TEXT = 64 << 10
"""Bytes of an agent.toml."""

MOST_TOOLS = 16
"""Tools of an agent's own."""

MOST_DOTS = 500
"""In one line: the time to parse a dotted key grows with the square of its parts."""

DEEPEST = 8
"""Levels of tables and lists, more than any agent has."""


def read_spec(content: bytes, ceiling: CeilingSettings, mistakes: list[Mistake]) -> Spec | None:
    """Read an agent.toml and add to `mistakes` whatever is wrong; null where anything is."""
    document = read_document(content, mistakes)
    return None if document is None else spec_of(document, ceiling, mistakes)


def spec_of(document: dict[str, Any], ceiling: CeilingSettings, mistakes: list[Mistake]) -> Spec | None:
    """Read what `read_document` has parsed, likewise."""
    values: dict[tuple[str, ...], Any] = {}
    found = list(_unfit_texts(document, ()))
    read_section(Spec, document, (), values, found)
    found += [*_missing(values, found), *_over_limits(values, ceiling)]
    if found:
        mistakes += found
        return None
    spec: Spec = build(Spec, values)
    found += [*_unfit_delegation(spec.delegate), *_double_names(spec)]
    mistakes += found
    return None if found else _sorted(spec)


def read_document(content: bytes, mistakes: list[Mistake]) -> dict[str, Any] | None:
    """Parse the TOML with all its strings in NFC and with LF, and see to what cannot stand in it anywhere."""
    text = _decoded(content)
    document = text if isinstance(text, Mistake) else _parsed(text)
    if isinstance(document, Mistake):
        mistakes.append(document)
        return None
    return document


def _decoded(content: bytes) -> str | Mistake:
    if len(content) > LARGEST_TEXT:
        return Mistake((), f"The file is larger than {LARGEST_TEXT} bytes", "shorten it", code="too_large")
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Mistake((), "The file is not UTF-8", "save it as UTF-8", line=line, code="not_utf8")
    hidden = find_hidden(text)
    if hidden is not None:
        problem = f"The file holds {hidden.name}"
        return Mistake((), problem, "remove it", line=hidden.line, code="hidden_character")
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        return Mistake((), "The file holds a line with too many dots", "break it up", code="bad_toml")
    return text


def _parsed(text: str) -> dict[str, Any] | Mistake:
    try:
        document = parse(Path(SPEC_FILE), text)
    except ConfigError as error:
        _, _, problem = error.message.partition(": ")
        line = error.data["line"]
        where = line if isinstance(line, int) else None
        return Mistake((), problem.rstrip("."), "mend the TOML", line=where, code="bad_toml")
    if _is_deep(document):
        return Mistake((), "The file nests tables too deeply", "mend the names", code="bad_toml")
    normalised: dict[str, Any] = _normal(document)
    return normalised


def limits() -> Iterator[tuple[tuple[str, str], str, str]]:
    """Every limit: its path, its name in the ceiling and its meaning."""
    for name, part in shape.parts(Spec).items():
        for field in attrs.fields(part.cls) if isinstance(part, shape.Section) else ():
            if "ceiling" in field.metadata:
                yield (name, field.name), field.metadata["ceiling"], field.metadata["doc"]


def _is_deep(document: Any) -> bool:
    """Whether it nests deeper than any agent does; a dotted key nests without bound, so this does not recurse."""
    level = [document]
    for _ in range(DEEPEST):
        level = [each for value in level for each in _held(value)]
        if not level:
            return False
    return True


def _held(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return normal(value)
    if isinstance(value, list):
        return [_normal(each) for each in value]
    return {normal(name): _normal(each) for name, each in value.items()} if isinstance(value, dict) else value


def _unfit_texts(value: Json, path: SettingPath) -> Iterator[Mistake]:
    """Strings, wherever they stand, that hide something or look like a secret."""
    if isinstance(value, str):
        if (hidden := find_hidden(value)) is not None:
            yield Mistake(path, f"holds {hidden.name}", "remove it", code="hidden_character")
        if (leak := find_leak(value)) is not None:
            hint = "remove it; an agent needs no secret"
            yield Mistake(path, f"holds what looks like {leak.name}", hint, code="secret")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in items:
        yield from _unfit_texts(each, (*path, step))


def _missing(values: dict[tuple[str, ...], Any], found: list[Mistake]) -> Iterator[Mistake]:
    at_fault = {mistake.path for mistake in found}
    for leaf in shape.leaves(Spec):
        if leaf.default is attrs.NOTHING and leaf.path not in values and not at_fault & _ways_to(leaf.path):
            problem = f"is missing; it must be {leaf.kind.expected}"
            yield Mistake(leaf.path, problem, f"add {leaf.path[-1]}: {leaf.doc}".rstrip("."), code="missing")


def _ways_to(path: tuple[str, ...]) -> set[SettingPath]:
    return {path[:length] for length in range(1, len(path) + 1)}


def _over_limits(values: dict[tuple[str, ...], Any], ceiling: CeilingSettings) -> Iterator[Mistake]:
    for path, name, _ in limits():
        most = min(getattr(ceiling, name), LARGEST_INTEGER)
        if values.get(path, 0) > most:
            hint = f"ask for at most {most}, or raise {name} in [factory.ceiling]"
            yield Mistake(path, f"is over the ceiling of {most}", hint, code="over_ceiling")


def _unfit_delegation(delegate: DelegatePart) -> Iterator[Mistake]:
    bounds = {"max_depth": LARGEST_DEPTH, "max_runs": MOST_RUNS}
    for name, most in bounds.items():
        value = getattr(delegate, name)
        path = ("delegate", name)
        if not delegate.agents and value != 0:
            problem, hint = "must be 0 where there are no agents to run", "name agents, or leave it out"
            yield Mistake(path, problem, hint, code="over_ceiling")
        elif delegate.agents and not 1 <= value <= most:
            wanted = "1" if most == 1 else f"a whole number from 1 to {most}"
            yield Mistake(path, f"must be {wanted} where there are agents to run", wanted, code="over_ceiling")


def _sorted(spec: Spec) -> Spec:
    """The order of tools means nothing."""
    return attrs.evolve(spec, tools=attrs.evolve(spec.tools, python=tuple(sorted(spec.tools.python))))


def _double_names(spec: Spec) -> Iterator[Mistake]:
    names = [tool.name for tool in spec.tools.python]
    for position, name in enumerate(names):
        if name in names[:position]:
            yield Mistake(("tools", "python", position, "name"), "stands twice", "rename one", code="double_name")
    if len(names) > MOST_TOOLS:
        problem, hint = f"must name at most {MOST_TOOLS} tools, not more", "leave some out"
        yield Mistake(("tools", "python"), problem, hint, code="too_large")
