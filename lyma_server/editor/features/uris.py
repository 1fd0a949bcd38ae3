"""Addresses of files. One file has many: percent signs more or fewer, links, `.` and `..`; it is known by its real path."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlsplit

from lyma_server.errors import UsageError


def to_path(uri: str) -> Path:
    """The absolute path of a `file:` URI, with `.` and `..` resolved and links as they are. Raises UsageError for others."""
    try:
        parts = urlsplit(uri)
    except ValueError as problem:
        raise UsageError(f"{uri} is not a URI.", uri=uri) from problem
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UsageError(f"{uri} is not the URI of a file on this machine.", uri=uri)
    rest = ("?" + parts.query if parts.query else "") + ("#" + parts.fragment if parts.fragment else "")
    decoded = os.fsdecode(unquote_to_bytes(parts.path + rest))  # some clients leave ? and # as they are
    if "\0" in decoded:
        raise UsageError(f"{uri} is not the URI of a file.", uri=uri)
    return Path(os.path.normpath(decoded))


def to_uri(path: Path | str) -> str:
    """The canonical `file:` URI of an absolute path."""
    return "file://" + quote(os.fsencode(path), safe="/~!$&'()*+,;=:@")


def real_path(uri: str) -> str | None:
    """What a file is known by: its path with all links followed, null where `uri` names no file."""
    try:
        return os.path.realpath(to_path(uri))
    except UsageError:
        return None


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both real."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
