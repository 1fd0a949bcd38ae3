"""Brace expansion: `{a,b}`, `{1..9}`, nested and side by side, from the left as bash does it."""

from __future__ import annotations

import re

from lyma_server.executor.marks import BRACE_CLOSE, BRACE_OPEN, COMMA, SOMETHING
from lyma_server.executor.world import TooComplex

MAX_WORDS = 4096
MAX_RANGE = 512
MAX_CHARACTERS = 1 << 21
MAX_LEVELS, MAX_BRACES = 40, 500
_RANGE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?")


def expand_braces(text: str, level: int = 0) -> list[str]:
    """Every word that the active braces of `text` make. Raises TooComplex where they are too many."""
    if BRACE_OPEN not in text:
        return [text]
    if level > MAX_LEVELS or text.count(BRACE_OPEN) > MAX_BRACES:
        raise TooComplex
    words, rest = [""], text
    while rest:
        before, brace, after = rest.partition(BRACE_OPEN)
        inner = _inside(after) if brace else None
        if inner is None:
            choices, rest = [before + brace], after
        else:
            choices = [before + choice for choice in _choices(inner, level)]
            rest = after[len(inner) + 1 :]
        if len(words) * len(choices) > MAX_WORDS or sum(map(len, words)) * len(choices) > MAX_CHARACTERS:
            raise TooComplex
        words = [word + choice for word in words for choice in choices]
    return words


def _inside(text: str) -> str | None:
    """What stands before the brace that closes the one just before `text`, None where none does."""
    depth = 0
    for index, character in enumerate(text):
        if character == BRACE_OPEN:
            depth += 1
        elif character == BRACE_CLOSE:
            if not depth:
                return text[:index]
            depth -= 1
    return None


def _choices(inner: str, level: int) -> list[str]:
    items = _items(inner)
    if len(items) > 1:
        return [word for item in items for word in expand_braces(item, level + 1)]
    return _range(inner) or ["{" + word + "}" for word in expand_braces(inner, level + 1)]


def _items(inner: str) -> list[str]:
    """`inner` parted at its commas, those in braces inside it excepted."""
    items, start, depth = [], 0, 0
    for index, character in enumerate(inner):
        if character in (BRACE_OPEN, BRACE_CLOSE):
            depth += 1 if character == BRACE_OPEN else -1
        elif character == COMMA and not depth:
            items.append(inner[start:index])
            start = index + 1
    return [*items, inner[start:]]


def _range(inner: str) -> list[str]:
    """The numbers or letters of `a..b..step`, empty where it is no range."""
    span = _RANGE.fullmatch(inner)
    if span is None or span.group(1).isalpha() != span.group(2).isalpha():
        return []
    first, last, step = span.groups()
    letters = first.isalpha()
    low, high = (ord(first), ord(last)) if letters else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    if len(numbers) > MAX_RANGE:
        return [SOMETHING]
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-").startswith("0") for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [chr(number) if letters else f"{number:0{width}d}" for number in numbers]
