"""Text of which parts are not known, in one kind of string.

What a command will see is mostly known when it is read: quotes, variables and simple substitutions can be worked out. The
rest is written as marks, single private-use characters inside an ordinary `str`, so that slicing, joining, reversing and
matching need no second implementation. No text from outside may contain a mark (`characters.py` refuses them).
"""

from __future__ import annotations

_BASE = 0x10FF00

UNKNOWN, SOMETHING, NETWORK, DECODED, ENVIRONMENT, OURSELVES, CREDENTIAL = (chr(_BASE + n) for n in range(7))
"""Unknown text: any, possibly none · at least one character · from the network · out of a decoder that was fed unknown
text · every environment variable · the process number of Lyma itself · the whole of a file of credentials."""

STAR, ANY, SET_OPEN, SET_CLOSE = (chr(_BASE + 16 + n) for n in range(4))
"""Active pattern characters `*`, `?`, `[`, `]`: the word stands for all names that match."""

BREAK, NOTHING, BRACE_OPEN, BRACE_CLOSE, COMMA, TILDE = (chr(_BASE + 32 + n) for n in range(6))
"""Only while a word is expanded: the end of a field · a quoted empty string · active brace and tilde characters."""

_PROTECTED = " \t\n*?[]"
_KEPT = "".join(chr(_BASE + 48 + n) for n in range(len(_PROTECTED)))
PROTECT = str.maketrans(_PROTECTED, _KEPT)
UNPROTECT = str.maketrans(_KEPT, _PROTECTED)
"""Only while a word is expanded: characters of a quoted part inside an expansion, which is split and matched as a whole."""

TAINTS = frozenset({NETWORK, DECODED, ENVIRONMENT, OURSELVES, CREDENTIAL})
UNKNOWNS = TAINTS | {UNKNOWN, SOMETHING}
PATTERNS = frozenset({STAR, ANY, SET_OPEN})
FIRST, LAST = chr(_BASE), chr(_BASE + 0xFF)

PLACEHOLDER = "<unknown>"
"""What stands for unknown text that is there: a name that no rule knows."""

_GLOB_OF = str.maketrans({STAR: "*", ANY: "?", SET_OPEN: "[", SET_CLOSE: "]"})
_MARK_OF = str.maketrans({"*": STAR, "?": ANY, "[": SET_OPEN, "]": SET_CLOSE})
_FILLED = str.maketrans(dict.fromkeys(UNKNOWNS, PLACEHOLDER))
_EMPTIED = str.maketrans({**dict.fromkeys(UNKNOWNS - {SOMETHING}, ""), SOMETHING: PLACEHOLDER})
_SHOWN = str.maketrans({**dict.fromkeys(UNKNOWNS, "…"), STAR: "*", ANY: "?", SET_OPEN: "[", SET_CLOSE: "]"})


def is_plain(text: str) -> bool:
    """Whether every character of `text` is known and means itself."""
    return text.isascii() or max(text) < FIRST


def is_known(text: str) -> bool:
    """Whether `text` has no unknown part; active pattern characters may be there."""
    return is_plain(text) or UNKNOWNS.isdisjoint(text)


def has_pattern(text: str) -> bool:
    return not is_plain(text) and not PATTERNS.isdisjoint(text)


def taints(text: str) -> str:
    """The marks of origin in `text`, each once."""
    return "" if is_plain(text) else "".join(sorted(TAINTS.intersection(text)))


def blur(text: str) -> str:
    """What is left of `text` after a filter that is not followed: anything, of the same origin."""
    return UNKNOWN + taints(text)


def readings(text: str) -> tuple[str, ...]:
    """What `text` may be: unknown parts once empty, where they may be, and once a name that no rule knows."""
    if is_known(text):
        return (text,)
    empty, filled = text.translate(_EMPTIED), text.translate(_FILLED)
    return (empty, filled) if empty != filled else (filled,)


def activate(text: str) -> str:
    """Turn pattern characters of an unquoted expansion into active ones."""
    return text.translate(_MARK_OF)


def deactivate(text: str) -> str:
    """Active pattern characters as themselves: where no file names are expanded."""
    return text.translate(_GLOB_OF)


def show(text: str) -> str:
    """For a message."""
    return text.translate(_SHOWN)
