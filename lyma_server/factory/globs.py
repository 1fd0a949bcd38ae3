"""Which files of the workspace an agent may read and write.

A glob is a relative path of names. In a name `*` is any run of characters and `?` is one; a name that is `**` stands for
any number of folders. A wildcard never takes a leading dot, so hidden files must be named. What is protected is never
matched, not even where a glob says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lyma_server.factory.protected import is_protected, names_protected
from lyma_server.factory.wildcard import fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST: Final = 256
"""In characters."""

MOST: Final = 64
"""Globs in one list."""

_ODD: Final = (
    (re.compile(r"^/|^[A-Za-z]:"), "is an absolute path", "begin at the workspace, such as src/**"),
    (re.compile(r"^~"), "begins with ~", "begin at the workspace, such as src/**"),
    (re.compile(r"\\"), "holds a backslash", "separate names with /"),
    (re.compile(r"(?:^|/)\.\.(?:/|$)"), "leaves the workspace by ..", "name folders inside the workspace"),
    (re.compile(r"(?:^|/)\.(?:/|$)"), "holds a name that is only a dot", "leave it out"),
    (re.compile(r"//|/$"), "holds an empty name", "write src/** for all below src"),
    (re.compile(r"[\[\]{}!|:<>\"$`]"), "holds a character that has no meaning here", "use letters, *, ? and **"),
    (re.compile(r"[^/]\*\*|\*\*[^/]"), "mixes ** with other characters", "write ** as a name of its own"),
    (re.compile(r"\*\*/\*\*"), "repeats **", "write ** once"),
    (re.compile(r"[. ](?:/|$)|(?:^|/) "), "holds a name that begins with a space or ends with a dot or space", "rename the file"),
)  # fmt: skip


def fault_of(glob: str, *, writing: bool) -> tuple[str, str, str] | None:
    """What is wrong with a glob: a code, the problem and a hint."""
    if not 0 < len(glob) <= LONGEST:
        return "bad_glob", f"must have 1 to {LONGEST} characters", "write a glob such as src/**"
    for pattern, problem, hint in _ODD:
        if pattern.search(glob):
            return "bad_glob", problem, hint
    names = glob.split("/")
    if any(name != "**" and names_protected(name, writing=writing) for name in names):
        return "protected_files", "reaches files that no agent may touch", "see docs/reference/agent.md for the list"
    return None


def is_allowed(path: str, globs: Iterable[str], *, writing: bool) -> bool:
    """Whether a relative path (names separated by /) may be read, or written."""
    if is_protected(path, writing=writing):
        return False
    names = path.split("/")
    return any(_matches(names, glob.split("/")) for glob in globs)


def _matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Walk the pattern over the names; `reached` are the counts of names that its beginning can stand for."""
    reached = {0}
    for wanted in (*pattern, "*") if pattern[-1] == "**" else pattern:
        if wanted == "**":
            reached = {end for start in reached for end in _depths(names, start)}
        else:
            reached = {at + 1 for at in reached if at < len(names) and _name_fits(names[at], wanted)}
    return len(names) in reached


def _depths(names: Sequence[str], start: int) -> Iterator[int]:
    """How far `**` can go from `start`: over any number of folders that are not hidden."""
    yield start
    for at in range(start, len(names)):
        if names[at].startswith("."):
            return
        yield at + 1


def _name_fits(name: str, pattern: str) -> bool:
    return (not name.startswith(".") or pattern.startswith(".")) and fits(name, pattern)


def may_hold(folder: str, globs: Iterable[str]) -> bool:
    """Whether a relative folder may hold, at whatever depth, a file that one of the globs names."""
    names = folder.split("/")
    return any(_leads_on(names, glob.split("/")) for glob in globs)


def _leads_on(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Walk the names over the pattern; `reached` are the places in it where the rest may begin."""
    reached = _skipping(pattern, {0})
    for name in names:
        stays = {at for at in reached if pattern[at] == "**" and not name.startswith(".")}
        moves = {at + 1 for at in reached if pattern[at] != "**" and _name_fits(name, pattern[at])}
        reached = _skipping(pattern, {at for at in stays | moves if at < len(pattern)})
    return bool(reached)


def _skipping(pattern: Sequence[str], reached: set[int]) -> set[int]:
    """`reached`, and what follows where `**` stands for no folder at all."""
    return reached | {at + 1 for at in reached if pattern[at] == "**" and at + 1 < len(pattern)}
