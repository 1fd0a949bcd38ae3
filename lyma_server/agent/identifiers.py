"""Names for sessions, turns and items: sortable by time, impossible to guess."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_DIGITS = 10
RANDOM_DIGITS = 16
SHAPE = re.compile(f"[{ALPHABET}]{{{TIME_DIGITS + RANDOM_DIGITS}}}")


def new_identifier(now_ms: int | None = None) -> str:
    """26 characters: the time in milliseconds, then 80 random bits (the layout of a ULID, in lower case)."""
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return _digits(moment, TIME_DIGITS) + _digits(secrets.randbits(5 * RANDOM_DIGITS), RANDOM_DIGITS)


def is_identifier(text: str) -> bool:
    """Whether `text` has the shape of one, and so is safe as the name of a file."""
    return SHAPE.fullmatch(text) is not None


def item_identifiers(turn: str) -> Callable[[], str]:
    """Names for the items of a turn, unique in its session and fit to be the id of a tool call."""
    number = 0

    def new_item() -> str:
        nonlocal number
        number += 1
        return f"{turn[-8:]}-{number}"

    return new_item


def _digits(number: int, length: int) -> str:
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(length)))
