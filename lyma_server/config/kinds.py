"""The kinds of values that settings have: what each accepts, exactly, and how it is written in a variable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import NOTHING, fields, frozen

from lyma_server.config.mistakes import Mistake, near_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.config.places import Path

_FOUND: Final[dict[type, str]] = {
    str: "a string",
    int: "a whole number",
    float: "a number with a fraction",
    bool: "a boolean",
    list: "a list",
    dict: "a table",
}

_WHOLE_NUMBER: Final = re.compile(r"[+-]?\d{1,18}")


class Kind(Protocol):
    """What a setting accepts. `expected` goes on from "must be"."""

    @property
    def expected(self) -> str: ...

    def parse(self, text: str) -> Any:
        """Turn the text of a variable into the value that TOML would have; what does not fit stays a string."""

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        """Turn a TOML value into the setting's. Where it cannot be, add to `mistakes`; the result is then void."""


@frozen
class Text:
    """A string with something in it."""

    expected: str = "a string"

    def parse(self, text: str) -> str:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(wrong(path, self.expected, value))
        elif not value.strip():
            mistakes.append(Mistake(path, "must not be empty", self.expected))
        elif not _is_unicode(value):
            mistakes.append(Mistake(path, "must be a string in UTF-8", self.expected))
        return value


@frozen
class KeyText:
    """A key or a reference to one, on one line."""

    expected: str = "a key, env:NAME or cmd:COMMAND"

    def parse(self, text: str) -> str:
        return text.strip()

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(wrong(path, self.expected, value))
        elif not value.isprintable() or not re.fullmatch(r"env:[A-Za-z_]\w*|cmd:\s*\S.*|(?!env:|cmd:)\S+", value):
            mistakes.append(
                Mistake(path, f"must be {self.expected}, without spaces or line breaks in a key", self.expected)
            )
        return value


@frozen
class Whole:
    """A whole number; true and false are none, and neither is 5.0."""

    least: int = 1

    @property
    def expected(self) -> str:
        return f"a whole number of at least {self.least}"

    def parse(self, text: str) -> int | str:
        return int(text) if _WHOLE_NUMBER.fullmatch(text.strip()) else text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not int:
            mistakes.append(wrong(path, self.expected, value))
        elif value < self.least:
            mistakes.append(Mistake(path, f"must be {self.expected}, not a smaller one", self.expected))
        return value


@frozen
class Choice:
    """One of a few words."""

    options: tuple[str, ...]
    code: str = "bad_value"

    @property
    def expected(self) -> str:
        return " or ".join(f'"{option}"' for option in self.options)

    def parse(self, text: str) -> str:
        return text.strip()

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(wrong(path, self.expected, value))
        elif value not in self.options:
            hint = near_name(value, self.options)
            mistakes.append(Mistake(path, f"must be {self.expected}{hint}", self.expected, code=self.code))
        return value


@frozen
class ListOf:
    """A list. In a variable: items between commas, or a TOML list where an item holds a comma itself."""

    item: Kind
    items: str
    """What it is a list of, in the plural."""

    @property
    def expected(self) -> str:
        return f"a list of {self.items}"

    def parse(self, text: str) -> Any:
        if text.lstrip().startswith("["):
            return _toml_value(text)
        return [self.item.parse(part.strip()) for part in text.split(",") if part.strip()]

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if not isinstance(value, list):
            mistakes.append(wrong(path, self.expected, value))
            return ()
        return tuple(self.item.read(each, (*path, position), mistakes) for position, each in enumerate(value))


@frozen
class Record:
    """A table that stands for one thing, such as a folder; `short` is the field that a plain string stands for."""

    cls: type
    kinds: Mapping[str, Kind]
    expected: str
    short: str | None = None

    def parse(self, text: str) -> Any:
        return text if self.short else _toml_value(text)

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        found: list[Mistake] = []
        read: dict[str, Any] = {}
        if self.short and isinstance(value, str):
            read[self.short] = self.kinds[self.short].read(value, path, found)
        elif isinstance(value, dict):
            read = self._read_table(value, path, found)
        else:
            found.append(wrong(path, self.expected, value))
        mistakes += found
        return None if found else self.cls(**read)

    def _read_table(self, table: dict[str, Any], path: Path, found: list[Mistake]) -> dict[str, Any]:
        found += [unknown((*path, name), self.kinds) for name in table if name not in self.kinds]
        needed = {field.name for field in fields(self.cls) if field.default is NOTHING}
        read = {}
        for name, kind in self.kinds.items():
            if name in table:
                read[name] = kind.read(table[name], (*path, name), found)
            elif name in needed:
                found.append(
                    Mistake((*path, name), f"is missing; it must be {kind.expected}", kind.expected, code="missing")
                )
        return read


def wrong(path: Path, expected: str, value: Any) -> Mistake:
    """Say that a value has the wrong type; the value itself may be a key, so it is not shown."""
    return Mistake(
        path, f"must be {expected}, not {_FOUND.get(type(value), 'a date or time')}", expected, code="wrong_type"
    )


def unknown(path: Path, known: Mapping[str, object]) -> Mistake:
    """Say that there is no such setting."""
    return Mistake(
        path, f"is not a setting{near_name(str(path[-1]), known)}", f"one of {', '.join(known)}", code="unknown_key"
    )


def _is_unicode(value: str) -> bool:
    """Whether it can be written. Bytes of a variable or an argument that were no UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _toml_value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text
