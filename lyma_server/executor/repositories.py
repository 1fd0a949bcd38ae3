"""Finds the repositories in a workspace, nested ones and those without a checkout included, for git finds them, too.

It looks at so many folders and no more, so that a huge workspace costs no more time than a large one. Links are not followed.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.isolation.regular import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST: Final = 5
"""Folders inside folders."""
MOST_FOLDERS: Final = 500
MOST_NAMES: Final = 20_000
MOST_FOUND: Final = 100

BULKY: Final = frozenset({"node_modules", "venv", "site-packages", "__pycache__", "target", "vendor", "objects"})
"""Folders of what others wrote, in great numbers: they are looked at last, as those are whose names begin with a dot."""
NOT_WITHIN: Final = frozenset({".git"})

BARE: Final = frozenset({"HEAD", "objects", "refs"})
"""What makes a folder a repository without a checkout (gitrepository-layout(5))."""
POINTS_TO: Final = b"gitdir:"
MODULES: Final = Path(".git", "modules")
LARGEST_POINTER: Final = 4096


def repositories(workspace: Path) -> Iterator[Path]:
    """The folders that hold the settings and hooks of each, the workspace's own first, and each once."""
    seen = set()
    for found in islice(_found(workspace), MOST_FOUND):
        real = os.path.realpath(found)
        if real not in seen:
            seen.add(real)
            yield found


def _found(workspace: Path) -> Iterator[Path]:
    yield from _of_checkout(workspace)
    for folder, names in _folders(str(workspace), str(workspace / MODULES)):
        if ".git" in names and folder != str(workspace):
            yield from _of_checkout(Path(folder))
        if names >= BARE:
            yield Path(folder)


def _of_checkout(folder: Path) -> Iterator[Path]:
    """Where its `.git` leads: a folder, or a file that names one, which may name the one that it shares with others."""
    git = folder / ".git"
    if os.path.isdir(git):  # noqa: PTH112 - Path.is_dir raises where it may not look
        yield git
        return
    pointer = _read(git)
    if pointer.startswith(POINTS_TO):
        own = folder / os.fsdecode(pointer.removeprefix(POINTS_TO).strip().replace(b"\0", b""))
        yield own
        shared = _read(own / "commondir").strip().replace(b"\0", b"")
        if shared:
            yield own / os.fsdecode(shared)


def _read(path: Path) -> bytes:
    """Nothing where there is no regular file."""
    with suppress(OSError):
        return read_regular(path, LARGEST_POINTER)
    return b""


def _folders(*roots: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Folders with the names in them, level by level, the bulky ones last."""
    waiting, bulky = deque((root, 0) for root in roots), deque[tuple[str, int]]()
    names_left = MOST_NAMES
    for _ in range(MOST_FOLDERS):
        if names_left <= 0 or not (waiting or bulky):
            return
        folder, depth = (waiting or bulky).popleft()
        names, inner = _look(folder, names_left)
        names_left -= len(names)
        yield folder, names
        if depth < DEEPEST:
            for name in sorted(inner - NOT_WITHIN):
                (bulky if name in BULKY or name[0] == "." else waiting).append((f"{folder}/{name}", depth + 1))


def _look(folder: str, most: int) -> tuple[frozenset[str], frozenset[str]]:
    """The names in a folder, and which of them are folders; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, most))
            inner = frozenset(each.name for each in found if each.is_dir(follow_symlinks=False))
            return frozenset(each.name for each in found), inner
    except OSError:
        return frozenset(), frozenset()
