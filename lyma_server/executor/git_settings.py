"""Which settings of a repository make git run a program: a command that adds one has left something that runs later."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lyma_server.isolation.regular import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS_PROGRAM: Final = re.compile(
    r"core\.(?:fsmonitor|hookspath|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor|gpg\.(?:.+\.)?program"
    r"|credential\.(?:.+\.)?helper|filter\..+\.(?:clean|smudge|process)|diff\.external|diff\..+\.(?:command|textconv)|merge\..+\.driver"
    r"|(?:difftool|mergetool|man|browser|guitool)\..+\.(?:cmd|path)|pager\..+|interactive\.difffilter|include\.path|includeif\..+\.path"
    r"|remote\..+\.(?:uploadpack|receivepack|vcs)|protocol\.(?:.+\.)?allow|uploadpack\.packobjectshook|submodule\..+\.update|init\.templatedir"
)
"""From git-config(1): keys whose value is a program, or a file with more keys. An alias is one where it begins with `!`."""

LARGEST: Final = 1 << 20


def program_settings(git: Path) -> frozenset[str]:
    """The settings of the repository whose folder is `git` that make git run something, each as `key = value`."""
    found = set()
    for file in ("config", "config.worktree"):
        try:
            text = read_regular(git / file, LARGEST).decode(errors="replace")
        except OSError:
            continue
        found |= {f"{key} = {value}" for key, value in settings(text) if runs_program(key, value)}
    return frozenset(found)


def runs_program(key: str, value: str) -> bool:
    """Whether git would start what `value` says."""
    if key.startswith("alias."):
        return value.lstrip('" ').startswith("!")
    return RUNS_PROGRAM.fullmatch(key) is not None and value.lower() not in ("", "true", "false")


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Every key, in lower case but for its middle part, with its value as it is written."""
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        line = line.strip()  # noqa: PLW2901 - the line as it counts
        if header := re.match(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]', line):
            name, middle = header.group(1).lower(), header.group(2)
            section = name if middle is None else f"{name}.{middle}"
            line = line[header.end() :].strip()  # noqa: PLW2901 - a key may follow on the same line
        if setting := re.match(r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$", line):
            yield f"{section}.{setting.group(1).lower()}", (setting.group(2) or "").strip()
