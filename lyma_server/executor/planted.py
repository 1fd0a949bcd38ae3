"""What a command may have left in a workspace that the person's own git or editor runs later, outside of every bound."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from lyma_server.executor.git_settings import program_settings
from lyma_server.executor.repositories import repositories

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EDITOR_FILES: Final = (
    ".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".devcontainer/devcontainer.json", ".devcontainer.json",
    ".idea/workspace.xml", ".zed/settings.json", ".zed/tasks.json", ".helix/config.toml", ".helix/languages.toml", ".nvim.lua", ".nvimrc",
    ".exrc", ".vimrc", ".lvimrc", ".dir-locals.el", ".envrc", ".gdbinit", ".lldbinit",
)  # fmt: skip
"""Files that editors, and what starts with a shell or a debugger, take programs from."""

MOST_HOOKS: Final = 100
GIT_RUNS: Final = "made git run a program from now on"


def planted(workspace: Path, who: str = "The command") -> frozenset[tuple[str, str]]:
    """All that is there, each as a sentence about `who` made it, with the state that it is in."""
    left = list(_editor_files(workspace))
    for git in repositories(workspace):
        name = os.path.relpath(git, workspace)
        left += ((f"{GIT_RUNS}: {setting} (in {name}/config).", "") for setting in program_settings(git))
        left += _hooks(git, name)
    return frozenset((f"{who} {sentence}", state) for sentence, state in left)


def _hooks(git: Path, shown: str) -> Iterator[tuple[str, str]]:
    try:
        names = sorted(os.listdir(git / "hooks"))  # noqa: PTH208 - names, of which few are looked at
    except OSError:
        return
    for name in [each for each in names if not each.endswith(".sample")][:MOST_HOOKS]:
        if state := _state(git / "hooks" / name):
            yield f"{GIT_RUNS}: the hook {name} (in {shown}/hooks).", state


def _editor_files(workspace: Path) -> Iterator[tuple[str, str]]:
    for name in EDITOR_FILES:
        if state := _state(workspace / name):
            yield (
                f"wrote {name}, from which your editor or shell may run programs; read it before you go on.",
                state,
            )


def _state(path: Path) -> str:
    """What changes with every change; empty where there is nothing."""
    try:
        facts = os.lstat(path)
    except OSError:
        return ""
    return f"{facts.st_ino} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns}"
