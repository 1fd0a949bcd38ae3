"""A key that is looked for everywhere, and the looking: written without any help from what is to be tested."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, unquote_to_bytes

from attrs import frozen

WINDOW = 12
"""So many characters of a key in a row are a leak. The last four, which masks show, are not."""

BASE64_WINDOW = 16


@frozen
class Canary:
    """A key made up for one test. `prefix` is what all keys of its vendor begin with."""

    value: str
    prefix: str = ""

    @property
    def pieces(self) -> set[bytes]:
        """What gives it away: every stretch of it that is not mostly the vendor's prefix."""
        data = self.value.encode()
        first = max(0, len(self.prefix) + 8 - WINDOW)
        return {data[start : start + WINDOW] for start in range(first, len(data) - WINDOW + 1)}

    @property
    def base64_pieces(self) -> set[bytes]:
        """The same of its base64, at all three alignments and in both alphabets."""
        found = set()
        for shift in range(3):
            for alphabet in (b"+/", b"-_"):
                text = base64.b64encode(bytes(shift) + self.value.encode(), alphabet)
                own = text[4 if shift else 0 : -4]
                first = BASE64_WINDOW + len(self.prefix) * 4 // 3 // 4 * 4 - 4
                found |= {own[end - BASE64_WINDOW : end] for end in range(max(first, BASE64_WINDOW), len(own) + 1, 4)}
        return found

    @property
    def spellings(self) -> dict[str, str]:
        """How a careless or hostile server may write it."""
        words = {f"base64 at {shift}": "x" * shift + self.value for shift in range(3)}
        written = {name: base64.b64encode(text.encode()).decode() for name, text in words.items()}
        return {
            "raw": self.value,
            "beginning": self.value[: len(self.prefix) + 10 if self.prefix else 20],
            **written,
            "base64 for addresses": base64.urlsafe_b64encode(self.value.encode()).decode(),
            "percent": quote(self.value, safe=""),
            "percent in lower case": re.sub(r"%..", lambda match: match[0].lower(), quote(self.value, safe="")),
            "JSON": json.dumps(self.value),
            "JSON of PHP": json.dumps(self.value).replace("/", "\\/"),
            "JSON of Go": re.sub("[<>&]", lambda match: _escape(match).lower(), json.dumps(self.value)),
            "JSON of .NET": re.sub(r"[<>&'+]|\\\"", _escape, json.dumps(self.value)[1:-1]),
        }


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0][-1]):04X}"


def readings(data: bytes) -> list[bytes]:
    """`data` as it is, and as whoever decodes it reads it."""
    seen = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", data)
    once = _unescaped(seen)
    return list(dict.fromkeys((seen, once, _unescaped(once), unquote_to_bytes(seen), unquote_to_bytes(once))))


def _unescaped(data: bytes) -> bytes:
    def character(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return chr(int(code[1:], 16)).encode("utf-8", "replace") if code[:1] == b"u" else code

    return re.sub(rb'\\(u00[0-9a-fA-F]{2}|["\\/])', character, data)


def gives_away(data: bytes, canary: Canary) -> bool:
    """Whether `data` holds the key in any spelling, or a piece of it that is worth something."""
    texts = readings(data)
    return any(piece in text for piece in canary.pieces for text in texts) or any(
        piece in text for piece in canary.base64_pieces for text in texts
    )
