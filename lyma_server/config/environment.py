"""Settings from variables and from flags: `LYMA_ROUTER__DEADLINE_S` is `router.deadline_s`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from lyma_server.config import shape
from lyma_server.config.mistakes import Mistake, near_name
from lyma_server.config.paths import HOME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX: Final = "LYMA_"

NOT_SETTINGS: Final = frozenset({HOME_VARIABLE})
"""Variables that begin like a setting and are none."""


@frozen
class Given:
    """What variables or flags set: values and the variable or flag of each, by path."""

    values: dict[tuple[str, ...], Any] = field(factory=dict)
    given_by: dict[tuple[str, ...], str] = field(factory=dict)


def variable_of(path: tuple[str, ...]) -> str:
    """Return the variable that sets the setting at `path`."""
    return PREFIX + "__".join(re.sub(r"[^A-Z0-9_]", "_", step.upper()) for step in path)


def read_variables(environ: Mapping[str, str], names: Iterable[str], mistakes: list[Mistake]) -> Given:
    """Read every `LYMA_…` variable. `names` are the known providers; an empty variable counts as not set."""
    given = Given()
    spelled = {variable_of((name,)).removeprefix(PREFIX).lower(): name for name in names}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or not environ[variable]:
            continue
        path = _path_of(variable, spelled)
        if path is None:
            hint = near_name(variable, [variable_of(leaf.path) for leaf in shape.leaves()])
            mistakes.append(Mistake((), f"there is no such setting{hint}", "a setting", variable))
        else:
            _take(given, path, environ[variable], variable, mistakes)
    return given


def read_flags(flags: Mapping[str, str], mistakes: list[Mistake]) -> Given:
    """Read settings by dotted name; their text is written as in a variable."""
    given = Given()
    for name, text in flags.items():
        path = tuple(name.split("."))
        if shape.find_leaf(path) is None:
            mistakes.append(Mistake((), unknown_name(name), "a setting", "the command line"))
        else:
            _take(given, path, text, "the command line", mistakes)
    return given


def unknown_name(name: str) -> str:
    """Say that no setting has this dotted name, and which one may have been meant."""
    return f"{name} is not a setting{near_name(name, ['.'.join(leaf.path) for leaf in shape.leaves()])}"


def _take(given: Given, path: tuple[str, ...], text: str, by: str, mistakes: list[Mistake]) -> None:
    leaf = shape.find_leaf(path)
    assert leaf is not None, path  # noqa: S101 - both callers looked
    found: list[Mistake] = []
    value = leaf.kind.read(leaf.kind.parse(text), path, found)
    if not found:
        given.values[path], given.given_by[path] = value, by
    mistakes += [evolve(mistake, given_by=by) for mistake in found]


def _path_of(variable: str, spelled: Mapping[str, str]) -> tuple[str, ...] | None:
    if variable != variable.upper():
        return None
    path = tuple(variable.removeprefix(PREFIX).lower().split("__"))
    if path[0] == "providers" and len(path) > 2:
        name = "__".join(path[1:-1])
        path = (path[0], spelled.get(name, name), path[-1])
    return path if shape.find_leaf(path) else None
