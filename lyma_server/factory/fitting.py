"""Holds what a model wrote to the schema it was given, in the parent."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.protocol.base import Json

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

_FENCED: Final = re.compile(r"\A\s*```[^\n]*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def complaints(schema: Mapping[str, Any], value: Json) -> str:
    """What is wrong with `value`, each with its place; empty where it fits."""
    from jsonschema import Draft202012Validator

    found = sorted(Draft202012Validator(schema).iter_errors(value), key=lambda error: list(map(str, error.path)))
    shown = (f"{error.json_path.removeprefix('$.')}: {_short(error.message)}" for error in found[:MOST_COMPLAINTS])
    return "; ".join(shown).replace("$: ", "")


def read_answer(text: str) -> Json:
    """The JSON that a model's answer is, with or without a fence around it; the text itself where it is none."""
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced[1] if fenced else text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_COMPLAINT else f"{message[:LONGEST_COMPLAINT]}..."
