"""What changed between two texts."""

from __future__ import annotations

from lyma_server.agent.lines import split_lines
from lyma_server.factory import patch

MANY_LINES = 5000
"""Beyond so many changed lines a line by line comparison takes seconds; the middle is then shown as replaced whole."""


def unified(path: str, before: str | None, after: str | None) -> str:
    """A unified diff; null stands for no file."""
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    return patch.unified(names, split_lines(before or ""), split_lines(after or ""), lambda lines: lines <= MANY_LINES)


def counts(diff: str) -> tuple[int, int]:
    """The lines that a unified diff adds and removes."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)
