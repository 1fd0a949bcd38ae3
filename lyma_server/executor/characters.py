"""The first look at a command: characters that make it read differently from how it runs."""

from __future__ import annotations

import unicodedata

from lyma_server.executor.marks import FIRST, LAST

MAX_BYTES = 64 * 1024
_PLAIN = frozenset("\t\n")
_INVISIBLE = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\ufeff\uffa0")


def _fault(character: str) -> str | None:
    category = unicodedata.category(character)
    if character == "\0":
        return "a NUL character"
    if category == "Cc":
        return "a control character"
    if category in ("Cf", "Zl", "Zp") or character in _INVISIBLE:
        return "an invisible or direction-changing character"
    if category == "Cs":
        return "half of a surrogate pair"
    if FIRST <= character <= LAST:
        return "a private-use character"
    return None


def find_fault(text: str) -> str | None:
    """What is wrong with the characters of `text`, or None. A CR that ends a line together with its LF is fine."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return f"more than {MAX_BYTES} bytes"
    if text.isascii() and text.isprintable():
        return None
    for character in dict.fromkeys(text.replace("\r\n", "\n")):
        if character in _PLAIN or (character.isascii() and character.isprintable()):
            continue
        fault = _fault(character)
        if fault:
            return f"{fault} (U+{ord(character):04X})"
    return None
