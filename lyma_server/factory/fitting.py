"""Holds what a model wrote to the schema it was given, in the parent."""

from __future__ import annotations

import json
import math
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from lyma_server.protocol.base import Json

    Rule = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]

MOST_COMPLAINTS: Final = 3
LONGEST_COMPLAINT: Final = 300
"""Characters."""

TEXT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
"""What an agent gives back that names no schema."""

MOST_STEPS: Final = 150_000
"""Parts of a value, each held to a part of a schema; to take so many steps lasts some seconds at most."""
MOST_FOUND: Final = 50
"""Mistakes that are looked for, of which the first few are told."""
UNCHECKED: Final = "it is too large or too deep to be held to its schema; answer more briefly"
FENCE: Final = "```"

_steps: ContextVar[int] = ContextVar("steps left")


class _TooInvolved(Exception):
    """The value and the schema were made for each other to take very long."""


def complaints(schema: Mapping[str, Any], value: Json) -> str:
    """What is wrong with `value`, each with its place; empty where it fits. What takes too many steps does not fit."""
    _steps.set(MOST_STEPS)
    try:
        errors = islice(_validator()(schema).iter_errors(value), MOST_FOUND)
        found = sorted(errors, key=lambda error: list(map(str, error.path)))
    except (_TooInvolved, RecursionError):
        return UNCHECKED
    shown = (f"{error.json_path.removeprefix('$.')}: {_short(error.message)}" for error in found[:MOST_COMPLAINTS])
    return "; ".join(shown).replace("$: ", "")


def read_answer(text: str) -> Json:
    """The JSON that a model's answer is, with or without a fence around it; the text itself where it is none."""
    try:
        return json.loads(unfenced(text), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def unfenced(text: str) -> str:
    """What stands between two fences, where `text` is nothing else; else `text`. Linear in time, unlike a pattern."""
    first, _, rest = text.strip().partition("\n")
    inner, newline, last = rest.rpartition("\n")
    return inner if newline and first.startswith(FENCE) and last.strip() == FENCE else text


@cache
def _validator() -> type[Validator]:
    """That of JSON Schema, which counts its steps, and takes no longer for a long list than the list is long."""
    from jsonschema import Draft202012Validator, validators

    rules = {**Draft202012Validator.VALIDATORS, "anyOf": _any_of, "uniqueItems": _unique}
    counted = {name: _counted(rule) for name, rule in rules.items()}
    made: type[Validator] = validators.extend(Draft202012Validator, counted)  # type: ignore[no-untyped-call]  # it has no types
    return made


def _counted(rule: Rule) -> Rule:
    def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        _spend(1 + _length(wanted) + _length(value))
        yield from rule(validator, wanted, value, schema) or ()

    return counted


def _spend(steps: int) -> None:
    left = _steps.get() - steps
    if left < 0:
        raise _TooInvolved
    _steps.set(left)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (dict, list)) else 0


def _any_of(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """As the library's own, which collects all mistakes by all schemas, though nobody reads them."""
    from jsonschema import ValidationError

    if not any(validator.evolve(schema=each).is_valid(value) for each in wanted):
        yield ValidationError(f"{value!r} is not valid under any of the given schemas")


def _unique(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """As the library's own, which compares each with each."""
    from jsonschema import ValidationError

    if not wanted or not validator.is_type(value, "array"):
        return
    seen = set()
    for each in value:
        text = json.dumps(_plain(each), sort_keys=True)
        _spend(len(text) // 16)
        seen.add(text)
    if len(seen) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _plain(value: Any) -> Any:
    """A value in which 1 and 1.0 are the same, as JSON Schema has it."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_COMPLAINT else f"{message[:LONGEST_COMPLAINT]}..."
