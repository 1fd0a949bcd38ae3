"""What changed between two texts."""

from __future__ import annotations

from difflib import unified_diff

from lyma_server.agent.lines import split_lines

MANY_LINES = 5000
"""Beyond so many changed lines a line by line comparison takes seconds; the middle is then shown as replaced whole."""
CONTEXT = 3


def unified(path: str, before: str | None, after: str | None) -> str:
    """A unified diff; null stands for no file."""
    old, new = split_lines(before or ""), split_lines(after or "")
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    start, end = _same_ends(old, new)
    if max(len(old), len(new)) - start - end > MANY_LINES:
        return _replaced(names, old, new, start, end)
    return "".join(_ended(line) for line in unified_diff(old, new, *names, n=CONTEXT, lineterm="\n"))


def counts(diff: str) -> tuple[int, int]:
    """The lines that a unified diff adds and removes."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def _same_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines are the same at the start and, of the rest, at the end."""
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    end = next((n for n in range(shorter - start) if old[-1 - n] != new[-1 - n]), shorter - start)
    return start, end


def _replaced(names: tuple[str, str], old: list[str], new: list[str], start: int, end: int) -> str:
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    places = f"@@ -{_place(start, old_middle)} +{_place(start, new_middle)} @@\n"
    body = [f"-{line}" for line in old_middle] + [f"+{line}" for line in new_middle]
    return "".join(_ended(line) for line in (f"--- {names[0]}\n", f"+++ {names[1]}\n", places, *body))


def _place(start: int, lines: list[str]) -> str:
    return f"{start + 1 if lines else start},{len(lines)}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
