"""What each line of an agent.toml is, while it is being written: it need not be sound, nor TOML at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from attrs import frozen

from lyma_server.editor.features.positions import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER: Final = re.compile(r"[ \t]*\[\[?[ \t]*([A-Za-z0-9_.-]*)")
_SETTING: Final = re.compile(r"""[ \t]*(?P<key>[A-Za-z0-9_.-]+)[ \t]*=[ \t]*""")
_TOKEN: Final = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*\"?|'[^']*'?|#.*|[\[\]{}]|[^\"'#\[\]{}]+", re.DOTALL)
_QUOTES: Final = ('"""', "'''")


@frozen
class Line:
    """`table` is the one that it stands in, `path` the setting that it gives or goes on with (empty: none); `value` is the
    column at which the value begins. A header has the path of its table.
    """

    text: str
    kind: Literal["header", "setting", "more", "other"]
    table: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    value: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Where the name that it gives begins and ends."""
        content = self.text.split("=", 1)[0].rstrip() if self.kind == "setting" else self.text.split("#", 1)[0].rstrip()
        return len(self.text) - len(self.text.lstrip()), len(content)


@frozen
class _Open:
    """What goes on in the next line: a text with these quotes, or brackets so deep."""

    quotes: str = ""
    depth: int = 0


def lines_of(text: str) -> tuple[Line, ...]:
    """All lines, their ends left off."""
    return tuple(_lines(text))


def _lines(text: str) -> Iterator[Line]:
    table: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    still = _Open()
    for raw in split_lines(text):
        line = raw.rstrip("\r\n")
        if still != _Open():
            yield Line(line, "more", table, path)
            still = _after(line, still)
        elif setting := _SETTING.match(line):
            path = (*table, *setting["key"].split("."))
            yield Line(line, "setting", table, path, setting.end())
            still = _after(line[setting.end() :], still)
        elif header := _HEADER.match(line):
            table = tuple(header[1].split(".")) if header[1] else ()
            yield Line(line, "header", table, table)
        else:
            yield Line(line, "other", table)


def _after(text: str, still: _Open) -> _Open:
    """What is open at the end of a line."""
    quotes, depth = still.quotes, still.depth
    position = 0
    while position < len(text):
        if quotes:
            end = text.find(quotes, position)
            if end < 0:
                return _Open(quotes, depth)
            quotes, position = "", end + 3
            continue
        token = _TOKEN.match(text, position)
        if token is None:
            break
        word, position = token[0], token.end()
        quotes = word if word in _QUOTES else ""
        depth += (word in "[{") - (word in "]}") if len(word) == 1 else 0
    return _Open(quotes, max(0, depth))
