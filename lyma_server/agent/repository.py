"""The git repository around a workspace: its branch, and what has changed since the last commit.

The settings of a repository can make git run programs, even for its status, and a workspace may be anybody's. So where a
repository has such settings, only its branch is told, which is read without git.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from lyma_server.agent.bounds import user_homes
from lyma_server.executor.git_settings import LARGEST, runs_program, settings
from lyma_server.isolation.regular import read_regular

TIMEOUT_S: Final = 1.0
"""A status that takes longer is left out: nobody waits for it."""
MOST_CHANGES: Final = 50
STATUS: Final = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "status",
    "--porcelain=v1",
    "--branch",
    "-z",
    "--ignore-submodules=all",
    "--",
    ".",
)


async def repository_state(root: Path) -> str:
    """The branch and a line for each change, as `git status --short --branch` has them; empty where there is no repository."""
    folders = _git_folders(root)  # a look at a few names takes less than the way to a thread and back
    if not folders:
        return ""
    status = None if await asyncio.to_thread(_runs_programs, folders) else await _status(root)
    return _told(status) if status else _branch(folders[0])


def _git_folders(root: Path) -> tuple[Path, ...]:
    """The repository's own folder, and the one that it shares with others where it is a worktree. One that holds a whole
    home is nobody's project.
    """
    homes = user_homes()
    for folder in (root, *root.parents):
        git = folder / ".git"
        if any(home.is_relative_to(folder) for home in homes):
            break
        if git.is_dir():
            return (git,)
        if git.is_file():
            return _of_worktree(git)
    return ()


def _of_worktree(file: Path) -> tuple[Path, ...]:
    try:
        own = file.parent / _text(file).removeprefix("gitdir:").strip()
        common = own / "commondir"
        shared = (own / _text(common).strip(),) if common.is_file() else ()
    except (OSError, ValueError):
        return ()
    return (own, *shared)


def _runs_programs(folders: tuple[Path, ...]) -> bool:
    for path in (folder / name for folder in folders for name in ("config", "config.worktree")):
        try:
            text = read_regular(path, LARGEST).decode(errors="replace")
        except FileNotFoundError:
            continue
        except OSError:
            return True
        if any(runs_program(key, value) for key, value in settings(text)):
            return True
    return False


async def _status(root: Path) -> str | None:
    """What git says, null where it says nothing in time."""
    from lyma_server.isolation.process import HelperFailed, run_helper

    git = await asyncio.to_thread(_git, root)
    if git is None:
        return None
    try:
        result = await run_helper([git, *STATUS], cwd=root, timeout_s=TIMEOUT_S)
    except HelperFailed:
        return None
    return result.stdout.decode(errors="replace") if result.status == 0 else None


def _git(root: Path) -> str | None:
    """Where git is. One that lies in the workspace is not ours to run."""
    found = shutil.which("git", path=os.environ.get("PATH", os.defpath))
    return None if found is None or Path(found).resolve().is_relative_to(root) else found


def _told(status: str) -> str:
    lines = [line.removeprefix("## ") for line in _joined(status.replace("\n", "␊").split("\0")) if line]
    more = len(lines) - 1 - MOST_CHANGES
    return "\n".join([*lines[: MOST_CHANGES + 1], *([f"and {more} more"] if more > 0 else [])])


def _joined(fields: list[str]) -> list[str]:
    """A line for each change: what was renamed or copied has its old name in the field after it."""
    lines, rest = [], iter(fields)
    for field in rest:
        renamed = field[:2].strip("? ").startswith(("R", "C")) and not field.startswith("##")
        lines.append(f"{field} <- {next(rest, '')}" if renamed else field)
    return lines


def _branch(git: Path) -> str:
    """The branch as HEAD names it; a commit by its first digits."""
    try:
        head = _text(git / "HEAD").strip()
    except (OSError, ValueError):
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else f"at {head[:12]}"


def _text(path: Path) -> str:
    """What one of git's small files says. Raises OSError, ValueError."""
    return read_regular(path, LARGEST).decode()
