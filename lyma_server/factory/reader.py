"""Reads an agent as it is written, from its folder. Only files that agent.toml names are read, and only plain ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from lyma_server.errors import UsageError
from lyma_server.factory.compile import Examined, Source, examine
from lyma_server.factory.diagnostic import SPEC_FILE, Diagnostic
from lyma_server.factory.folder import Demands, Folder, Unfit
from lyma_server.factory.schema_subset import LARGEST
from lyma_server.factory.spec_kinds import FILE_NAME
from lyma_server.factory.spec_text import LARGEST_TEXT, read_document

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.config.model import CeilingSettings

_BESIDE: Final = re.compile(rf"(?P<folder>tools|schema)/(?P<name>{FILE_NAME}\.(?:py|json))")

_HINTS: Final = {
    "missing": "write it",
    "symlink": "put the file itself there",
    "not_a_folder": "make it a folder",
    "not_regular": "put a plain file there",
    "hard_link": "copy it, so that it has one name",
    "too_large": "shorten it",
    "changed": "compile again",
    "case_twin": "rename one",
}


def examine_folder(folder: Path, ceiling: CeilingSettings, *, text: bytes | None = None) -> Examined:
    """Read the agent in `folder` and compile it; `text` stands in for agent.toml, for a buffer that is not saved yet."""
    source, diagnostics = read_agent(folder, text=text)
    examined = examine(source, ceiling)
    if not diagnostics:
        return examined
    unread = {each.file for each in diagnostics}
    others = tuple(each for each in examined.diagnostics if each.file not in unread)
    return Examined(None, (*diagnostics, *others))


def read_agent(folder: Path, *, text: bytes | None = None) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The bytes of an agent and what could not be read. Raises UsageError where there is no agent.toml to begin with."""
    found: list[Diagnostic] = []
    files: dict[str, bytes] = {}
    try:
        with Folder.open(folder) as opened:
            if text is None:
                text = opened.read(SPEC_FILE, Demands(LARGEST_TEXT))
            for name in named_in(text):
                _read_into(files, opened, name, found)
    except Unfit as error:
        raise UsageError(f"{folder / SPEC_FILE} {error.problem}; name the folder of an agent.") from None
    return Source(text, files), tuple(found)


def read_text(folder: Path) -> bytes:
    """The bytes of agent.toml alone. Raises UsageError where there is none to be read."""
    try:
        with Folder.open(folder) as opened:
            return opened.read(SPEC_FILE, Demands(LARGEST_TEXT))
    except Unfit as error:
        raise UsageError(f"{folder / SPEC_FILE} {error.problem}; name the folder of an agent.") from None


def named_in(text: bytes) -> tuple[str, ...]:
    """The files beside agent.toml that it names, as far as their names may be read at all; it need not be sound."""
    document = read_document(text, []) or {}
    tools = _at(_at(document, "tools"), "python")
    named = [_at(document, "output"), *(tools if isinstance(tools, list) else [])]
    names = (_at(table, setting) for table in named for setting in ("file", "schema"))
    return tuple(sorted({name for name in names if isinstance(name, str) and _BESIDE.fullmatch(name)}))


def _at(table: Any, name: str) -> Any:
    return table.get(name) if isinstance(table, dict) else None


def _read_into(files: dict[str, bytes], opened: Folder, name: str, found: list[Diagnostic]) -> None:
    place = _BESIDE.fullmatch(name)
    assert place is not None  # noqa: S101 - `named_in` has seen to it
    try:
        with opened.inside(place["folder"]) as inner:
            _refuse_twins(inner, place["name"])
            files[name] = inner.read(place["name"], Demands(LARGEST))
    except Unfit as error:
        code = "missing_file" if error.code == "missing" else error.code
        hint = _HINTS.get(error.code, "see to it that it can be read")
        found.append(Diagnostic(code, "", None, f"{name} {error.problem}.", hint, name))


def _refuse_twins(folder: Folder, name: str) -> None:
    twins = [each for each in folder.names() if each.casefold() == name.casefold()]
    if len(twins) > 1:
        raise Unfit("case_twin", f"is there {len(twins)} times, in different letter case")
