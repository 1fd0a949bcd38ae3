r"""Lines as editors count them: they end with `\n`, `\r\n` or `\r`, and with nothing else."""

from __future__ import annotations

import re

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their ends; only the last may have none. Joined, they are `text` again."""
    return LINE.findall(text)


def line_end(text: str) -> str:
    r"""The line end that `text` uses most; `\n` where it has none."""
    windows = text.count("\r\n")
    counts = {"\n": text.count("\n") - windows, "\r\n": windows, "\r": text.count("\r") - windows}
    return max(counts, key=lambda end: counts[end])


def with_line_end(text: str, end: str) -> str:
    """`text` with every line end replaced by `end`."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return plain if end == "\n" else plain.replace("\n", end)


def same_lines(one: str, other: str) -> bool:
    """Whether both hold the same lines, whatever ends them and whether or not the last one has an end."""
    return with_line_end(one, "\n").removesuffix("\n") == with_line_end(other, "\n").removesuffix("\n")
