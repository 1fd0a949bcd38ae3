"""Files that a prompt names: `@path`, `@path:A-B` and `@"a path with spaces"`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

MENTION = re.compile(
    r"""(?<![\w@/.`"'])@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"'`@,;()<>\[\]{}]+))""",
)
LINES = re.compile(r":(?P<first>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))?")
TRAILING = ".,:!?…"


@frozen
class Mention:
    """A file by its path, as written, whole or by lines from 1, both inclusive."""

    path: str
    first_line: int | None = None
    last_line: int | None = None

    @property
    def looks_like_a_file(self) -> bool:
        """Whether the person surely meant a file: `@src/a.py` does, `@alice` does not."""
        return "/" in self.path or "." in self.path


def mentions(prompt: str) -> Iterator[Mention]:
    """Each file that is named, once, in order. Whether it exists is for the caller to see."""
    seen = set()
    for found in MENTION.finditer(prompt):
        rest = prompt[found.end() :] if found["quoted"] else ""
        mention = _mention(found["quoted"] or found["bare"].rstrip(TRAILING), rest)
        if mention.path and mention not in seen:
            seen.add(mention)
            yield mention


def _mention(written: str, rest: str) -> Mention:
    """Lines may follow a quoted path, or end a bare one."""
    lines = LINES.match(rest) if rest else None
    if not rest and (ending := re.search(LINES.pattern + "$", written)):
        lines, written = ending, written[: ending.start()]
    if lines is None:
        return Mention(written)
    first = int(lines["first"])
    return Mention(written, first, int(lines["last"] or first))
