"""The file config.toml: opened so that nobody else can have written it or can read it."""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
from typing import TYPE_CHECKING, Any, Final

from lyma_server.config import kinds, model, shape
from lyma_server.config.mistakes import Mistake
from lyma_server.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from lyma_server.config.places import Path

LARGEST_FILE: Final = 1 << 20
"""In bytes."""

_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Not through a symbolic link, and without waiting for a FIFO's writer."""

_TWICE: Final = {"Cannot overwrite a value": "A setting stands twice", "Cannot declare ": "A table stands twice"}
"""How tomllib begins to say it, and a plain sentence without the name, which may be a key."""


def read_text(path: FilePath) -> str | None:
    """Return the text of the configuration, null where there is no file.

    The checks are made on the open descriptor: a regular file, the user's own, closed to group and others. Raises
    ConfigError with the command that mends it.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refusal(path, "is a symbolic link; put the file itself there") from error
        raise _refusal(path, f"cannot be opened ({error.strerror})") from error
    try:
        _check(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(LARGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > LARGEST_FILE:
        raise _refusal(path, f"is larger than {LARGEST_FILE} bytes; it should hold settings only")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}, line {line}: not UTF-8; save the file as UTF-8.", file=str(path), line=line
        ) from None


def parse(path: FilePath, text: str) -> dict[str, Any]:
    """Parse TOML. Raises ConfigError with the line, and never with the text: it may hold a key."""
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        problem, line = _syntax_problem(str(error), text)
        message = f"{path}, line {line}: {problem}; the file must be valid TOML."
    raise ConfigError(message, file=str(path), line=line, expected="valid TOML")


def read_values(document: dict[str, Any], mistakes: list[Mistake]) -> dict[tuple[str, ...], Any]:
    """Return the settings in a parsed file by path. A provider that is there at all has its own path, too."""
    values: dict[tuple[str, ...], Any] = {}
    read_section(model.Settings, document, (), values, mistakes)
    return values


def read_section(
    cls: type,
    table: dict[str, Any],
    path: tuple[str, ...],
    values: dict[tuple[str, ...], Any],
    mistakes: list[Mistake],
) -> None:
    """Read the table of `cls` at `path`: its sound settings go into `values` by path, all that is wrong to `mistakes`."""
    known = shape.parts(cls)
    for name, value in table.items():
        here = (*path, name)
        part = known.get(shape.LONG_FORMS.get(name, name) if cls is model.ProviderSettings else name)
        if part is None:
            mistakes.append(kinds.unknown(here, known))
        elif isinstance(part, shape.Leaf):
            _read_leaf(part, value, here, values, mistakes)
        elif part.named:
            _read_named(part, value, here, values, mistakes)
        elif _is_table(value, here, mistakes):
            read_section(part.cls, value, here, values, mistakes)


def _read_leaf(
    leaf: shape.Leaf,
    value: Any,
    path: tuple[str, ...],
    values: dict[tuple[str, ...], Any],
    mistakes: list[Mistake],
) -> None:
    found: list[Mistake] = []
    read = leaf.kind.read(value, path, found)
    mistakes += found
    whole = (*path[:-1], leaf.path[-1])
    if not found:
        values[whole] = values[whole] + read if whole in values else read


def _read_named(
    section: shape.Section,
    value: Any,
    path: tuple[str, ...],
    values: dict[tuple[str, ...], Any],
    mistakes: list[Mistake],
) -> None:
    for name, table in value.items() if _is_table(value, path, mistakes) else ():
        here = (*path, name)
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            problem = "holds a name with other characters than letters, digits, - and _"
            mistakes.append(Mistake(path, problem, "letters, digits, - and _"))
        elif _is_table(table, here, mistakes):
            values[here] = section.cls
            read_section(section.cls, table, here, values, mistakes)


def _is_table(value: Any, path: Path, mistakes: list[Mistake]) -> bool:
    if isinstance(value, dict):
        return True
    mistakes.append(kinds.wrong(path, "a table", value))
    return False


def _check(path: FilePath, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise _refusal(path, "is not a regular file")
    if facts.st_uid != os.geteuid():
        raise _refusal(path, f"belongs to another user; run: chown {os.geteuid()} {shlex.quote(str(path))}")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise _refusal(path, f"can be read or changed by others; run: chmod 600 {shlex.quote(str(path))}")


def _refusal(path: FilePath, problem: str) -> ConfigError:
    return ConfigError(f"{path} {problem}.", file=str(path))


def _syntax_problem(message: str, text: str) -> tuple[str, int]:
    """Take tomllib's message apart: "Invalid value (at line 3, column 9)"; quoted text in it may come from the file."""
    problem, _, place = message.partition(" (at ")
    found = re.match(r"line (\d+)", place)
    line = int(found[1]) if found else text.count("\n") + 1
    for beginning, plainly in _TWICE.items():
        if problem.startswith(beginning):
            return plainly, line
    return re.sub(r" ?(['\"]).{4,}\1", "", problem), line
