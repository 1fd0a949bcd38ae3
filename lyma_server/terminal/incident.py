"""What nobody foresaw: a number for the person, the details for the log in Lyma's home."""

from __future__ import annotations

import os
import secrets
import time
from traceback import StackSummary, extract_tb

from lyma_server.errors import LymaError


def record(error: Exception) -> str:
    """Write the details down and give the sentence to show. The log names places and types, and no values: an
    exception's message may hold a key or a piece of somebody's file.
    """
    number = secrets.token_hex(4)
    try:
        where = _append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} incident {number}\n{_describe(error)}\n")
    except (OSError, LymaError):
        return f"Internal error, incident {number}; its details could not be written down."
    return f"Internal error, incident {number}; its details are in {where}, please report them."


def _describe(error: BaseException | None) -> str:
    lines = []
    while error is not None:
        frames = extract_tb(error.__traceback__)
        lines += [f"  {type(error).__module__}.{type(error).__qualname__}", *_places(frames)]
        error = error.__cause__ or error.__context__
    return "\n".join(lines)


def _places(frames: StackSummary) -> list[str]:
    return [f"    {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _append(text: str) -> str:
    from lyma_server.config.paths import Home

    home = Home.find(os.environ)
    home.ensure()
    path = home.log / "incidents.log"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return str(path)
