"""The part of JSON Schema 2020-12 that agents may use: what always ends, quickly, and means the same everywhere.

There is no `pattern`, no remote reference, no recursion, no fraction and no conditional.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lyma_server.factory.canonical import parse_strictly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lyma_server.protocol.base import Json

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
LARGEST: Final = 64 << 10
"""Bytes."""
DEEPEST: Final = 12
MOST_PARTS: Final = 2_000
"""Schemas in one, with every reference counted as often as it is followed."""

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_REFERENCE: Final = re.compile(r"#/\$defs/([A-Za-z_][A-Za-z0-9_-]{0,63})")
_PROPERTY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
Fault: TypeAlias = "tuple[str, str, str]"
"""Where (a JSON pointer), the problem, and a hint."""


def parse_schema(text: str) -> tuple[Json, list[Fault]]:
    """Parse one and say all that is wrong with it; the schema is null where it cannot even be parsed."""
    try:
        schema = parse_strictly(text)
    except ValueError as error:
        return None, [("", f"is not valid JSON ({error})", "write plain JSON")]
    if not isinstance(schema, dict):
        return None, [("", "is not an object", 'begin with {"type": "object"')]
    faults = list(_faults(schema, "", 0))
    if schema.get("type") != "object":
        faults.append(("/type", 'must be "object"', "put what you need into a property"))
    return schema, faults or list(_reference_faults(schema))


def _faults(schema: Json, place: str, depth: int) -> Iterator[Fault]:
    """What is wrong with one schema and with those inside it."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield place, "is no schema", "write an object"
        return
    if depth > DEEPEST:
        yield place, f"nests deeper than {DEEPEST}", "make it flatter"
        return
    for keyword, value in schema.items():
        rule = _KEYWORDS.get(keyword)
        if rule is None or (keyword == "$defs" and depth):
            hint = "use enum, or say it in the description" if keyword in _PATTERNS else f"use {', '.join(_KEYWORDS)}"
            yield f"{place}/{keyword[:40]}", "is not allowed in an agent", hint
        elif not rule(value):
            yield f"{place}/{keyword}", "has a value of the wrong kind", "see JSON Schema 2020-12"
    for name, inner in _inner(schema):
        yield from _faults(inner, f"{place}/{name}", depth + 1)


def _inner(schema: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """The schemas directly inside one, with the way to each."""
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield keyword, schema[keyword]
    for keyword in ("properties", "$defs"):
        if isinstance(schema.get(keyword), dict):
            yield from ((f"{keyword}/{name}", inner) for name, inner in schema[keyword].items())
    if isinstance(schema.get("anyOf"), list):
        yield from ((f"anyOf/{position}", inner) for position, inner in enumerate(schema["anyOf"]))


def _reference_faults(schema: Mapping[str, Json]) -> Iterator[Fault]:
    """References that lead nowhere, in a circle, or to more than a validator should walk."""
    definitions: Mapping[str, Json] = schema.get("$defs", {})
    sizes: dict[str, int | None] = {}

    def size(part: Json) -> int:
        if not isinstance(part, dict):
            return 1
        own = 1 + sum(size(inner) for name, inner in _inner(part) if not name.startswith("$defs/"))
        return own + (followed(part["$ref"]) if "$ref" in part else 0)

    def followed(reference: str) -> int:
        name = reference.removeprefix("#/$defs/")
        if name not in definitions:
            raise ValueError("leads nowhere")
        if sizes.setdefault(name, None) is None:
            if name in open_names:
                raise ValueError("leads back to itself")
            open_names.add(name)
            sizes[name] = size(definitions[name])
            open_names.discard(name)
        return sizes[name] or 1

    open_names: set[str] = set()
    try:
        total = size(schema) + sum(followed(f"#/$defs/{name}") for name in definitions)
    except ValueError as error:
        yield "/$ref", f"{error}", "refer to a part of $defs, without a circle"
        return
    if total > MOST_PARTS:
        yield "/$ref", f"makes more than {MOST_PARTS} parts", "make it smaller"


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    named = value if isinstance(value, list) else [value]
    return bool(named) and all(each in _TYPES for each in named) and len(set(named)) == len(named)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


def _has_names(value: Any) -> bool:
    return isinstance(value, dict) and all(_PROPERTY.fullmatch(name) for name in value)


def _is_plain(value: Any) -> bool:
    """A text, a whole number, true, false or null."""
    return value is None or isinstance(value, (str, bool, int))


_PATTERNS: Final = frozenset({"pattern", "patternProperties", "propertyNames", "format"})

_KEYWORDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "$schema": lambda value: value == DIALECT,
    "$defs": _has_names,
    "$ref": lambda value: isinstance(value, str) and bool(_REFERENCE.fullmatch(value)),
    "title": _is_text,
    "description": _is_text,
    "type": _is_type,
    "enum": lambda value: isinstance(value, list) and bool(value) and all(map(_is_plain, value)),
    "const": _is_plain,
    "properties": _has_names,
    "required": _is_names,
    "additionalProperties": lambda value: isinstance(value, (bool, dict)),
    "items": lambda value: isinstance(value, (bool, dict)),
    "anyOf": lambda value: isinstance(value, list) and bool(value),
    "minItems": _is_count,
    "maxItems": _is_count,
    "uniqueItems": lambda value: isinstance(value, bool),
    "minLength": _is_count,
    "maxLength": _is_count,
    "minimum": _is_whole,
    "maximum": _is_whole,
    "exclusiveMinimum": _is_whole,
    "exclusiveMaximum": _is_whole,
    "multipleOf": lambda value: type(value) is int and value > 0,
}
