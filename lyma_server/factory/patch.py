"""The patch that shows what an agent would change: a unified diff, as git reads it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from attrs import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_LINES: Final = 2000
"""Beyond so many differing lines a comparison line by line takes seconds; they are then shown as replaced whole."""

MOST_EFFORT: Final = 8_000_000
"""Each file costs the square of its differing lines; what goes beyond it is replaced whole, since a run waits for its patch."""

_NO_END: Final = "\\ No newline at end of file\n"


def patch_of(changes: Iterable[tuple[str, bytes | None, bytes]]) -> str:
    """A patch for files, each with its path, what it was (null for no file) and what it becomes."""
    effort = Effort()
    return "".join(_one(path, old, new, effort) for path, old, new in sorted(changes, key=lambda change: change[0]))


@define
class Effort:
    """What has been spent on comparing lines."""

    spent: int = 0

    def allows(self, lines: int) -> bool:
        """Whether so many differing lines may be compared; that is spent then."""
        allowed = lines <= MOST_LINES and self.spent + lines**2 <= MOST_EFFORT
        self.spent += lines**2 if allowed else 0
        return allowed


def _one(path: str, old: bytes | None, new: bytes, effort: Effort) -> str:
    if old == new:
        return ""
    head = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if old is None else "")
    before, after = _text(old or b""), _text(new)
    names = ("/dev/null" if old is None else f"a/{path}", f"b/{path}")
    if before is None or after is None:
        return f"{head}Binary files {names[0]} and {names[1]} differ\n"
    names = (_ended(names[0]), _ended(names[1]))
    return head + unified(names, _lines(before), _lines(after), effort.allows)


def unified(names: tuple[str, str], old: list[str], new: list[str], may_compare: Callable[[int], bool]) -> str:
    """A unified diff of lines that keep their ends, empty where they are the same.

    `may_compare` says whether so many differing lines may be compared one by one; if not, they are shown as replaced whole.
    """
    start, end = _same_ends(old, new)
    if not may_compare(max(len(old), len(new)) - start - end):
        removed, added = old[start : len(old) - end], new[start : len(new) - end]
        place = f"@@ -{_place(start, removed)} +{_place(start, added)} @@\n"
        body = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
        lines = [f"--- {names[0]}\n", f"+++ {names[1]}\n", place, *body]
    else:
        lines = list(difflib.unified_diff(old, new, *names))
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


def _ended(name: str) -> str:
    """A name with a space needs an end, or git takes what follows the space for a date."""
    return f"{name}\t" if " " in name else name


def _same_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines are the same at the start and, of the rest, at the end."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start)
    return start, end


def _place(start: int, lines: list[str]) -> str:
    return f"{start + 1 if lines else start},{len(lines)}"


def _lines(text: str) -> list[str]:
    """Lines by LF alone, as patches have them."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
