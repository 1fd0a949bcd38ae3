"""Wildcards for one name in a path: `*` is any run of characters, `?` is one. Linear in time, not a regular expression."""

from __future__ import annotations


def fits(name: str, pattern: str) -> bool:
    """Whether `name` as a whole fits `pattern`."""
    at, star, resume = 0, -1, 0
    position = 0
    while position < len(name):
        wanted = pattern[at : at + 1]
        if wanted == "*":
            star, resume, at = at, position, at + 1
        elif wanted in {name[position], "?"}:
            at, position = at + 1, position + 1
        elif star >= 0:
            resume += 1
            at, position = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")
