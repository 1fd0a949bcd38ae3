"""Text of others, made safe for a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
_HARMLESS = {**_PICTURES, 0x0D: None, 0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
_LINE = {**_HARMLESS, 0x0A: " ", 0x09: " "}


def plain(text: str) -> str:
    """Show control characters instead of obeying them: ESC becomes ␛. Carriage returns go, since they hide a line."""
    return text.translate(_HARMLESS)


def plain_line(text: str, limit: int = 200) -> str:
    """The same on one line of at most `limit` characters."""
    line = " ".join(text.split()).translate(_LINE)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def styled(stream: TextIO) -> bool:
    """Whether to use colours and the like on it: a terminal, and nobody objects (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
