"""Backslash escapes: of `$'...'`, of `echo -e` and of `printf`."""

from __future__ import annotations

import re

_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(0?[0-7]{1,3})|c(.)|(.))", re.DOTALL
)


def _character(code: int) -> str:
    return chr(code) if code < 0x10FF00 and not 0xD800 <= code < 0xE000 else ""


def _decode(match: re.Match[str]) -> str:
    byte, short, long, octal, control, simple = match.groups()
    if octal is not None:
        return _character(int(octal, 8) & 0xFF)
    for digits in (byte, short, long):
        if digits is not None:
            return _character(int(digits, 16))
    if control is not None:
        return _character(ord(control) & 0x1F)
    return _SIMPLE.get(simple, "\\" + simple)


def decode_ansi(text: str) -> str:
    """What `$'text'` means; a NUL ends nothing here, it is dropped."""
    return _ESCAPE.sub(_decode, text).replace("\0", "")


def decode_format(text: str) -> str:
    """What the format of `printf` and the sets of `tr` mean; a NUL is kept."""
    return _ESCAPE.sub(_decode, text)


def decode_echo(text: str) -> str:
    r"""What `echo -e` and `printf %b` print; `\c` ends the output."""
    return _ESCAPE.sub(_decode, text.split("\\c", 1)[0])
