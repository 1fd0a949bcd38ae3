"""Values of a Python program that is read, not run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from lyma_server.executor.marks import UNKNOWN

if TYPE_CHECKING:
    from lyma_server.executor.languages.python import Definition

MAX_TEXT = 1 << 16


@frozen
class Name:
    """Something of a module: `os.system`."""

    dotted: str


@frozen
class Place:
    """A `pathlib.Path`."""

    text: str


Value: TypeAlias = "str | bytes | int | Name | Place | Definition | list[Value] | None"
"""None is a value that is not known."""


def text_of(value: Value) -> str:
    """A value as text, with a mark where it is not known."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").replace("\0", "")
    if isinstance(value, Place):
        return value.text
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Name) and value.dotted == "os.environ":
        from lyma_server.executor.marks import ENVIRONMENT

        return ENVIRONMENT
    return UNKNOWN


def operate(operator: ast.operator, left: Value, right: Value) -> Value:
    """`left operator right`."""
    if isinstance(operator, ast.Div) and isinstance(left, Place):
        other = text_of(right)
        return Place(other if other.startswith("/") else f"{left.text.rstrip('/')}/{other}")
    if isinstance(operator, ast.Add):
        return _add(left, right)
    if isinstance(operator, ast.Mult):
        return _repeat(left, right)
    if isinstance(operator, ast.Mod) and isinstance(left, str):
        return _format(left, right)
    if isinstance(left, int) and isinstance(right, int):
        table = {ast.Sub: left - right, ast.BitXor: left ^ right, ast.BitAnd: left & right, ast.BitOr: left | right}
        return table.get(type(operator))
    return None


def _add(left: Value, right: Value) -> Value:
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, str | bytes) or isinstance(right, str | bytes):
        return (text_of(left) + text_of(right))[:MAX_TEXT]
    return None


def _repeat(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return left * right if abs(left) < MAX_TEXT and abs(right) < MAX_TEXT else None
    if isinstance(right, int) and isinstance(left, str | list):
        return left * right if len(left) * max(right, 0) <= MAX_TEXT else None
    return None


def _format(pattern: str, right: Value) -> str:
    import re

    values = iter(right if isinstance(right, list) else [right])
    return re.sub(
        r"%[-#0 +]*\d*(?:\.\d+)?[sdrx%]", lambda m: "%" if m.group(0) == "%%" else text_of(next(values, None)), pattern
    )


def subscript(owner: Value, index: int | slice) -> Value:
    """`owner[index]`."""
    if not isinstance(owner, str | bytes | list):
        return None
    try:
        return owner[index]
    except (IndexError, ValueError):
        return None
