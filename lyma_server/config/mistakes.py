"""What is wrong with a configuration: all of it at once, each with its place, none with a value (it may be a key)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from lyma_server.errors import ConfigError
from lyma_server.secret import VENDOR_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lyma_server.config.places import Path

LONGEST_NAME: Final = 40
"""In characters. Longer names are not shown."""


@frozen
class Mistake:
    """`problem` goes on from the name of the setting: "must be …", "is not a setting …".

    `given_by` is the variable or the flag that it was made in; empty for the file. `line` counts from 1. `code` is one
    word for programs.
    """

    path: Path
    problem: str
    expected: str = ""
    given_by: str = ""
    line: int | None = None
    code: str = "bad_value"


def dotted(path: Path) -> str:
    """Name a setting for people: `providers.openai.keys (item 2)`; positions count from 1."""
    name = ""
    for step in path:
        name += f" (item {step + 1})" if isinstance(step, int) else f".{_shown(step)}" if name else _shown(step)
    return name


def error_of(mistakes: Iterable[Mistake], file: str, text: str) -> ConfigError:
    """One error for all of them: the first makes the sentence and the data, the others follow on lines of their own."""
    first, *others = _with_lines(mistakes, text)
    error = ConfigError(
        "\n".join(_sentence(mistake, file) for mistake in (first, *others)),
        key=dotted(tuple(step for step in first.path if isinstance(step, str))) or first.given_by,
        expected=first.expected,
        others=[_sentence(other, file) for other in others],
    )
    if not first.given_by:
        error.data |= {"file": file, "line": first.line}
    return error


def sentence(text: str) -> str:
    """End `text` with a full stop, unless it asks."""
    return text if text.endswith("?") else f"{text}."


def near_name(name: str, known: Iterable[str]) -> str:
    """Return a hint at the name that was probably meant, or nothing."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _shown(name: str) -> str:
    """A name as it is, unless it may be a key that was pasted into the wrong place."""
    return "…" if name.startswith(VENDOR_PREFIXES) or len(name) > LONGEST_NAME else name


def _with_lines(mistakes: Iterable[Mistake], text: str) -> Sequence[Mistake]:
    from lyma_server.config.places import lines_of

    placed = list(mistakes)
    unplaced = [each for each, mistake in enumerate(placed) if not (mistake.given_by or mistake.line)]
    lines = lines_of(text, (placed[each].path for each in unplaced)) if unplaced else []
    for each, line in zip(unplaced, lines, strict=True):
        placed[each] = evolve(placed[each], line=line)
    return sorted(placed, key=lambda mistake: (bool(mistake.given_by), mistake.line or 0))


def _sentence(mistake: Mistake, file: str) -> str:
    place = mistake.given_by or (f"{file}, line {mistake.line}" if mistake.line else file)
    name = dotted(mistake.path)
    return sentence(f"{place}: {name} {mistake.problem}" if name else f"{place}: {mistake.problem}")
