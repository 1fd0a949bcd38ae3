"""Strings that look like a secret. A bundle is shown, stored and copied; nothing secret may be in it."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lyma_server.secret import VENDOR_PREFIXES

_PREFIXES: Final = "|".join(re.escape(prefix) for prefix in VENDOR_PREFIXES)

_SHAPES: Final = (
    ("a provider's key", rf"(?<![A-Za-z0-9_-])(?:{_PREFIXES})(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{{16,}}"),
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("an AWS key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("a Slack token", r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a signed token", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,1000}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10}"),
    ("a password in an address", r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,64}:[^\s/:@]{3,128}@"),
    (
        "a secret",
        r"""(?i)(?:api[_-]?key|secret|token|passw(?:or)?d)\\?["']?\s{0,8}[:=]\s{0,8}\\?["'](?=[^"'\s]{0,199}\d)[^"'\s]{16,200}["']""",
    ),
)
_PATTERNS: Final = tuple((name, re.compile(shape)) for name, shape in _SHAPES)


@frozen
class Leak:
    """What it looks like, and its line, from 1."""

    name: str
    line: int


def find_leak(text: str) -> Leak | None:
    """The first string in `text` that looks like a secret."""
    matches = ((pattern.search(text), name) for name, pattern in _PATTERNS)
    found = [(match.start(), name) for match, name in matches if match]
    if not found:
        return None
    start, name = min(found)
    return Leak(name, text.count("\n", 0, start) + 1)
