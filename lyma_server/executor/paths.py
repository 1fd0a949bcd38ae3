"""Where a path leads, read without touching the disk first and through its links second."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from lyma_server.executor.marks import PATTERNS, deactivate, has_pattern, is_plain, readings

if TYPE_CHECKING:
    from lyma_server.isolation.sight import Sight

_SELF_ROOT = re.compile(r"/proc/(?:self|thread-self|\d+|<unknown>)(?:/task/[^/]+)?/root(?=/|$)")
_SELF_CWD = re.compile(r"/proc/(?:self|thread-self)(?:/task/[^/]+)?/cwd(?=/|$)")
MAX_PATTERN = 1024
"""A longer pattern is taken to match: working it out takes too long."""

_USUAL_NAMES = ("src", "tests", "docs", "build")


def normalise(path: str, cwd: str) -> str:
    """An absolute path without `.`, `..`, `//` or a detour through /proc. `path` may hold active patterns."""
    whole = path if path.startswith("/") else f"{cwd}/{path}"
    if "/proc/" in whole:
        whole = _SELF_CWD.sub(lambda _: cwd, re.sub("//+", "/", whole))
        while _SELF_ROOT.search(whole):
            whole = _SELF_ROOT.sub("", whole) or "/"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


@lru_cache(maxsize=4096)
def covers(pattern: str, name: str) -> bool:
    """Whether one component of a path, perhaps with active patterns, may stand for `name`."""
    if not has_pattern(pattern):
        return pattern == name
    if name.startswith(".") and pattern[0] != ".":
        return False
    if len(pattern) > MAX_PATTERN:
        return True
    return fnmatchcase(name, _as_glob(pattern))


def _as_glob(pattern: str) -> str:
    """Literal pattern characters escaped, active ones as fnmatch writes them; `[^...]` becomes `[!...]`."""
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in pattern)
    return deactivate(escaped).replace("[^", "[!")


@lru_cache(maxsize=1024)
def takes_everything(pattern: str) -> bool:
    """Whether a component such as `*` or `?*` takes every ordinary name in a folder."""
    return has_pattern(pattern) and all(covers(pattern, name) for name in _USUAL_NAMES)


def resolve(path: str, cwd: str, *, through_links: bool = True) -> tuple[str, ...]:
    """Every place that the text of a path may mean: each reading, then the same through links on the disk."""
    found: dict[str, None] = {}
    for reading in readings(path):
        if not reading and path:
            continue
        for folder in readings(cwd):
            lexical = normalise(reading, folder or "/")
            found[lexical] = None
            if through_links:
                found[follow_links(lexical)] = None
                if ".." in reading.split("/"):  # from where a link leads, not from where it lies
                    found[follow_links(reading if reading.startswith("/") else f"{folder or '/'}/{reading}")] = None
    return tuple(found)


def follow_links(path: str) -> str:
    """`path` through symbolic links, as far as it has no pattern."""
    if is_plain(path):
        return _real(path)
    folder, pattern = _split_pattern(path)
    return normalise(pattern, _real(folder))


def _split_pattern(path: str) -> tuple[str, str]:
    parts = path.split("/")
    first = next(i for i, part in enumerate(parts) if not PATTERNS.isdisjoint(part) or not is_plain(part))
    return "/".join(parts[:first]) or "/", "/".join(parts[first:])


_OWN_PROCESS = ("/proc/self/", "/proc/thread-self/")
"""Links that lead to whoever looks: followed by name alone."""

SEEN_FROM: ContextVar[Sight | None] = ContextVar("sight of the process that is judged", default=None)
"""What paths mean to a running process, whose links are not those that we see; null for our own."""


def _real(path: str) -> str:
    sight = SEEN_FROM.get()
    if sight is None and path.startswith(_OWN_PROCESS):
        return path
    try:
        return os.path.realpath(path) if sight is None else sight.real_path(path)
    except (OSError, ValueError):
        return path
