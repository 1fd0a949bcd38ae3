"""Lines and characters, as LSP counts them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BYTES: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def split_lines(text: str) -> list[str]:
    r"""The lines of `text` with their ends. Only `\n`, `\r\n` and `\r` end a line: `str.splitlines` knows eight more,
    and counts wrong from the first form feed on. The last line may be empty.
    """
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def units(text: str, encoding: str) -> int:
    """The length of `text` in the units of `encoding`."""
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def to_column(line: str, character: int, encoding: str) -> int:
    """The index in `line` of a character counted in `encoding`; beyond the end, or inside a character, the nearest before."""
    content = line.rstrip("\r\n")
    if encoding == "utf-32" or content.isascii():
        return min(character, len(content))
    codec, size = _BYTES[encoding]
    head = content.encode(codec, "surrogatepass")[: character * size]
    return len(head.decode(codec, "ignore"))


def to_character(line: str, column: int, encoding: str) -> int:
    """The reverse of `to_column`."""
    return units(line[:column], encoding)


def to_offset(lines: list[str], line: int, character: int, encoding: str) -> int:
    """The index in the whole text of a position; beyond the end of the text, its end."""
    if line >= len(lines):
        return sum(map(len, lines))
    return sum(map(len, lines[:line])) + to_column(lines[line], character, encoding)
