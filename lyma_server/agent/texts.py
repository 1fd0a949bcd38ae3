"""Texts inside of data: one change made to every string of a value, and whole characters only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def map_texts(value: Value, change: Callable[[str], str]) -> Value:
    """`value` with `change` made to every string in it, keys of objects included. What does not change is not copied."""
    return cast("Value", _mapped(value, change))


def _mapped(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (tuple, list)):
        parts = [_mapped(part, change) for part in value]
        return value if all(map(_same, parts, value)) else type(value)(parts)
    if isinstance(value, dict):
        return {change(key): _mapped(part, change) for key, part in value.items()}
    if attrs.has(type(value)):
        return _mapped_object(value, change)
    return value


def _same(one: object, other: object) -> bool:
    return one is other


def _mapped_object(value: Any, change: Callable[[str], str]) -> object:
    changed = {}
    for field in attrs.fields(type(value)):
        before = getattr(value, field.name)
        after = _mapped(before, change)
        if after is not before:
            changed[field.name] = after
    return attrs.evolve(value, **changed) if changed else value


def whole(text: str) -> str:
    """`text` with half surrogate pairs replaced: models write them, and nothing can encode them."""
    return text if text.isascii() else HALF_CHARACTER.sub("\ufffd", text)
