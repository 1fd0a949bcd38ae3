"""Replaces parts of a text that are named by what they say.

Every part must stand in the text exactly once, as the text is before any of them is replaced; so a part that another one
makes or breaks is refused, and nothing is half done.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from attrs import frozen

from lyma_server.agent.lines import line_end, with_line_end
from lyma_server.errors import ToolError


@frozen
class Hunk:
    r"""`old` is replaced by `new`. Line ends are compared as if all were `\n`, and written as the text has them."""

    old: str
    new: str


def replace(text: str, hunks: list[Hunk]) -> str:
    """`text` with all hunks made. Raises ToolError that says which hunk does not fit and why."""
    end = line_end(text)
    plain = with_line_end(text, "\n")
    hunks = [Hunk(with_line_end(hunk.old, "\n"), with_line_end(hunk.new, "\n")) for hunk in hunks]
    places = sorted((_place(plain, hunk, number), number, hunk) for number, hunk in enumerate(hunks, 1))
    for (start, number, hunk), (following, other, _) in pairwise(places):
        if start + len(hunk.old) > following:
            raise ToolError(f"Edits {number} and {other} overlap; make one edit of them.")
    original = Origins(text)
    parts, position = [], 0
    for start, _, hunk in places:
        head, tail = _same_ends(hunk)
        new = hunk.new[head : len(hunk.new) - tail]
        parts += [text[position : original(start + head)], with_line_end(new, end)]
        position = original(start + len(hunk.old) - tail)
    return "".join([*parts, text[position:]])


def _same_ends(hunk: Hunk) -> tuple[int, int]:
    """How much both begin and end with: that stays as it is, its line ends included."""
    head = _same_start(hunk.old, hunk.new)
    return head, _same_start(hunk.old[head:][::-1], hunk.new[head:][::-1])


def _same_start(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _place(plain: str, hunk: Hunk, number: int) -> int:
    old = hunk.old
    if not old:
        raise ToolError(f"Edit {number} has an empty old_text; use write_file to write a whole file.")
    if old == hunk.new:
        raise ToolError(f"Edit {number} changes nothing: its old_text and new_text are the same.")
    found = plain.count(old)
    if found == 1 and plain.find(old, plain.find(old) + 1) < 0:
        return plain.find(old)
    if found:
        raise ToolError(
            f"The old_text of edit {number} stands in the file {_times(plain, old)} times; add lines around it."
        )
    raise ToolError(f"The old_text of edit {number} does not stand in the file{_nearly(plain, old)}; read it again.")


def _times(plain: str, old: str) -> int:
    """How often `old` occurs, overlaps included."""
    count, start = 0, plain.find(old)
    while start >= 0:
        count, start = count + 1, plain.find(old, start + 1)
    return count


def _nearly(plain: str, old: str) -> str:
    """Where it would stand if spaces did not count."""
    wanted = [line.strip() for line in old.strip().split("\n")]
    lines = [line.strip() for line in plain.split("\n")]
    for number in range(len(lines) - len(wanted) + 1):
        if lines[number] == wanted[0] and lines[number : number + len(wanted)] == wanted:
            return f" (with other spaces, it does at line {number + 1})"
    return ""


class Origins:
    r"""Finds a place of the plain text in the original one, where `\r\n` is two characters."""

    def __init__(self, text: str) -> None:
        self._ends: list[int] = []
        start = text.find("\r\n")
        while start >= 0:
            self._ends.append(start - len(self._ends))
            start = text.find("\r\n", start + 2)

    def __call__(self, place: int) -> int:
        """Each pair that lies wholly before `place` adds one."""
        return place + bisect_right(self._ends, place - 1)
