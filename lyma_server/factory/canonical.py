"""One value, one text, one hash."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")

LARGEST_INTEGER: Final = 2**53 - 1
"""Beyond it, JSON numbers are not the same everywhere (RFC 8785)."""


def canonical(value: Json) -> bytes:
    """Canonical JSON (RFC 8785, for values without fractions and with keys of the Basic Multilingual Plane)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest(content: bytes) -> str:
    """The SHA-256 of `content` in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def hash_of(content: bytes) -> str:
    """As an agent is called: `sha256:` and the digits."""
    return f"sha256:{digest(content)}"


def parse_strictly(content: str | bytes) -> Json:
    """Parse JSON. Raises ValueError for invalid UTF-8, duplicate names, fractions, NaN, integers beyond 2^53 and nesting
    that is too deep.
    """
    try:
        text = content if isinstance(content, str) else content.decode()
        return json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_float=_refused("a number with a fraction"),
            parse_constant=_refused("no JSON number"),
            parse_int=_whole,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return names


def _whole(digits: str) -> int:
    if len(digits) > len(str(LARGEST_INTEGER)) + 1 or abs(int(digits)) > LARGEST_INTEGER:
        raise ValueError("an integer is too large")
    return int(digits)


def _refused(what: str) -> Any:
    def refuse(_digits: str) -> None:
        raise ValueError(f"{what} is not allowed; use integers")

    return refuse
