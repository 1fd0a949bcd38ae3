"""Characters that make a text read differently from what it does."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from attrs import frozen

_PLAIN: Final = frozenset("\t\n")

_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks, by their category, that show nothing."""

_SELECTOR: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""One after a visible character chooses how that is drawn; more can carry a hidden text."""

MOST_MARKS: Final = 30
"""On one letter, as in Unicode's stream-safe text (UAX 15); to bring more into order takes the square of their number."""

_KINDS: Final = {
    "Cc": "a control character",
    "Cf": "an invisible or direction-changing character",
    "Cs": "half of a surrogate pair",
    "Co": "a private-use character",
    "Cn": "a character that Unicode does not define",
    "Zl": "an invisible line break",
    "Zp": "an invisible line break",
}


@frozen
class HiddenCharacter:
    """What it is, with its number, and its line, from 1."""

    name: str
    line: int


def find_hidden(text: str) -> HiddenCharacter | None:
    """The first character in `text` that may not stand in an agent. Its line ends are LF."""
    if text.isascii() and text.translate(_WITHOUT_PLAIN).isprintable():
        return None
    before, marks = "", 0
    for position, character in enumerate(text):
        kind = _kind(character, before)
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MOST_MARKS:
            kind = f"one of more than {MOST_MARKS} marks on one letter"
        if kind is not None:
            return HiddenCharacter(f"{kind} (U+{ord(character):04X})", text.count("\n", 0, position) + 1)
        before = character
    return None


def normal(text: str) -> str:
    """`text` as it goes into a bundle: in Unicode's form NFC, lines ended by LF."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    """`text` with every hidden character written out, for a person to read: U+202E becomes `<U+202E>`."""
    shown, before = [], ""
    for character in text:
        shown.append(f"<U+{ord(character):04X}>" if _kind(character, before) else character)
        before = character
    return "".join(shown)


_WITHOUT_PLAIN: Final = dict.fromkeys(map(ord, _PLAIN))


def _kind(character: str, before: str) -> str | None:
    if character in _PLAIN or (character.isascii() and character.isprintable()):
        return None
    if character in _INVISIBLE:
        return _KINDS["Cf"]
    if _SELECTOR.match(character):
        drawn = character == "\ufe0f" and before and not before.isspace() and not _SELECTOR.match(before)
        return None if drawn else _KINDS["Cf"]
    return _KINDS.get(unicodedata.category(character))
