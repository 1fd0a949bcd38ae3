"""Bytes and text, so that a file keeps its encoding and its byte order mark."""

from __future__ import annotations

import codecs

ENCODINGS: dict[str, tuple[bytes, str]] = {
    "utf-8": (b"", "utf-8"),
    "utf-8-sig": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
}
"""By name: the byte order mark and the codec. UTF-16 is only believed with its mark."""


def decoded(data: bytes) -> tuple[str, str] | None:
    """The text of `data` and the name of its encoding; null where it is no text (a NUL, or bytes that do not decode)."""
    name = _encoding(data)
    mark, codec = ENCODINGS[name]
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else (text, name)


def encoded(text: str, name: str) -> bytes:
    """The bytes of `text`. Raises UnicodeEncodeError where it holds half of a character."""
    mark, codec = ENCODINGS[name]
    return mark + text.encode(codec)


def _encoding(data: bytes) -> str:
    return next((name for name, (mark, _) in ENCODINGS.items() if mark and data.startswith(mark)), "utf-8")
