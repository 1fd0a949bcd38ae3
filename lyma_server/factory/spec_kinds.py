"""What the settings of an agent accept, beyond the kinds that every setting knows. Each also says it as JSON Schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.config import kinds
from lyma_server.config.mistakes import Mistake
from lyma_server.factory.globs import LONGEST, MOST, fault_of

if TYPE_CHECKING:
    from lyma_server.config.places import Path
    from lyma_server.protocol.base import Json

FILE_NAME: Final = r"[a-z0-9_][A-Za-z0-9_-]{0,59}"


@frozen
class Constant:
    """One value and no other."""

    value: int

    @property
    def expected(self) -> str:
        return str(self.value)

    @property
    def schema(self) -> Json:
        return {"const": self.value}

    def parse(self, text: str) -> Any:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not int or value != self.value:
            mistakes.append(Mistake(path, f"must be {self.expected}", self.expected))
        return value


@frozen
class Prose:
    """A text of at most `most` bytes in UTF-8; on one line, unless `lines`."""

    most: int
    lines: bool = False

    @property
    def expected(self) -> str:
        return f"a text of 1 to {self.most} bytes" + ("" if self.lines else " on one line")

    @property
    def schema(self) -> Json:
        return {"type": "string", "minLength": 1, "maxLength": self.most}

    def parse(self, text: str) -> str:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(kinds.wrong(path, self.expected, value))
        elif not value.strip():
            mistakes.append(Mistake(path, "must not be empty", self.expected))
        elif len(value.encode("utf-8", "surrogatepass")) > self.most:
            mistakes.append(Mistake(path, f"must be {self.expected}, not longer", self.expected, code="too_large"))
        elif not self.lines and "\n" in value:
            mistakes.append(Mistake(path, "must be on one line", self.expected))
        return value


@frozen
class Matching:
    """A text with a pattern; `expected` says it for people. May be left empty if `optional`."""

    pattern: str
    expected: str
    code: str = "bad_value"
    optional: bool = False

    @property
    def schema(self) -> Json:
        pattern = f"^(?:{self.pattern})?$" if self.optional else f"^{self.pattern}$"
        return {"type": "string", "pattern": pattern}

    def parse(self, text: str) -> str:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(kinds.wrong(path, self.expected, value))
        elif not (re.fullmatch(self.pattern, value) or (self.optional and value == "")):
            mistakes.append(Mistake(path, f"must be {self.expected}", self.expected, code=self.code))
        return value


@frozen
class Glob:
    """A glob of the workspace's files."""

    writing: bool
    expected: str = "a glob of files in the workspace, such as src/**"

    @property
    def schema(self) -> Json:
        return {"type": "string", "minLength": 1, "maxLength": LONGEST}

    def parse(self, text: str) -> str:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if type(value) is not str:
            mistakes.append(kinds.wrong(path, self.expected, value))
        elif (fault := fault_of(value, writing=self.writing)) is not None:
            code, problem, hint = fault
            mistakes.append(Mistake(path, problem, hint, code=code))
        return value


@frozen
class Several:
    """A list of at most `most`, whose order means nothing: it is sorted, and what is there twice counts once."""

    item: kinds.Kind
    items: str
    most: int = MOST

    @property
    def expected(self) -> str:
        return f"a list of at most {self.most} {self.items}"

    def parse(self, text: str) -> Any:
        return text

    def read(self, value: Any, path: Path, mistakes: list[Mistake]) -> Any:
        if not isinstance(value, list):
            mistakes.append(kinds.wrong(path, self.expected, value))
            return ()
        found: list[Mistake] = []
        items = [self.item.read(item, (*path, position), found) for position, item in enumerate(value)]
        if len(items) > self.most:
            found.append(Mistake(path, f"must be {self.expected}, not more", self.expected, code="too_large"))
        mistakes += found
        return () if found else tuple(sorted(set(items)))
