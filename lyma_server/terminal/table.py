"""Columns for people."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from lyma_server.terminal.plain import plain_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def terminal_columns() -> int | None:
    """How wide the terminal is that stdout goes to; nothing where it is none, and nothing is to be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(head: Sequence[str], rows: Iterable[Sequence[str]], columns: int | None = None) -> str:
    """Left-aligned columns, two spaces apart, without trailing spaces. Lines longer than `columns` are cut."""
    lines = [[plain_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    return "".join(_cut(line, columns) + "\n" for line in aligned)


def _cut(line: str, columns: int | None) -> str:
    return line if columns is None or len(line) <= columns else line[: columns - 1] + "…"
