"""What is wrong with an agent, each with a code, a place and a hint. No value is shown: it may be a secret."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen

from lyma_server.config.mistakes import dotted, sentence
from lyma_server.config.places import lines_of
from lyma_server.errors import CompileFailed, SpecInvalid
from lyma_server.factory.characters import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.config.mistakes import Mistake

SPEC_FILE: Final = "agent.toml"


@frozen
class Diagnostic:
    """`file` is relative to the agent's folder, `path` names the setting (empty where it is about the whole file),
    `line` counts from 1, `code` is one word for programs.
    """

    code: str
    path: str
    line: int | None
    message: str
    hint: str
    file: str = SPEC_FILE

    @property
    def place(self) -> str:
        """The file and the line, for people."""
        return f"{self.file}, line {self.line}" if self.line else self.file


MOST: Final = 20
"""Diagnostics of one file; finding the line of each takes time."""


def of_mistakes(mistakes: Iterable[Mistake], text: str) -> tuple[Diagnostic, ...]:
    """The first mistakes in a specification, in the order of their lines."""
    first = list(islice(mistakes, MOST))
    lines = (
        lines_of(text, (mistake.path for mistake in first)) if any(each.path for each in first) else [None] * len(first)
    )
    found = [_of_mistake(mistake, mistake.line or line) for mistake, line in zip(first, lines, strict=True)]
    return tuple(sorted(found, key=lambda each: (each.line is None, each.line or 0, each.path)))


def refuse(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise for what is there: SpecInvalid for mistakes in agent.toml, CompileFailed for those in its other files."""
    listed = tuple(diagnostics)
    if not listed:
        return
    first = listed[0]
    error = SpecInvalid if any(each.file == SPEC_FILE for each in listed) else CompileFailed
    others = f" ({len(listed) - 1} more)" if listed[1:] else ""
    raise error(
        f"{first.place}: {first.message.rstrip('.')}{others}; {first.hint}.",
        diagnostics=[as_json(each) for each in listed],
    )


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """For the wire."""
    return asdict(diagnostic)


def _of_mistake(mistake: Mistake, line: int | None) -> Diagnostic:
    name = visible(dotted(mistake.path))
    message = sentence(f"{name} {mistake.problem}".strip())
    return Diagnostic(mistake.code, name, line, message, mistake.expected or "see docs/reference/agent.md")
