"""Looks at the machine for what a confinement must know. Creates Lyma's home and the folders that caches need, no more."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.isolation import unix_sockets
from lyma_server.isolation.confinement import PRIVATE, Surroundings, contains, is_private, outermost
from lyma_server.isolation.regular import read_regular
from lyma_server.isolation.unix_sockets import Reach

if TYPE_CHECKING:
    from collections.abc import Iterable

CACHES: Final = {
    ".cache": "",
    ".npm": "npm",
    ".yarn": "yarn",
    ".bun/install/cache": "bun",
    ".cargo/registry": "cargo",
    ".cargo/git": "cargo",
    ".gradle": "gradle",
    ".m2": "mvn",
    ".ivy2": "sbt",
    ".nuget/packages": "dotnet",
    ".local/share/pnpm/store": "pnpm",
    ".local/share/uv": "uv",
    ".bundle/cache": "bundle",
    "go/pkg": "go",
}
"""Below the user's home: what build tools fetch once and keep, and the tool. Never a folder whose programs are on PATH."""

RUN_FILES: Final = ("/run/current-system", "/run/opengl-driver", "/run/systemd/resolve/resolv.conf")
RESOLVER: Final = Path("/etc/resolv.conf")
PATH_MAX: Final = 4096
PACKAGE: Final = Path(__file__).resolve().parents[1]


def survey(workspace: Path, user_home: Path, lyma_homes: Iterable[Path]) -> Surroundings:
    """What there is. `lyma_homes` as they are named; they are created where they are missing, for their owner alone."""
    named = tuple(lyma_homes)
    for home in named:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    real_workspace, real_home = workspace.resolve(), user_home.resolve()
    shared_git = shared_git_folder(real_workspace)
    homes = tuple(home.resolve() for home in named)
    reach = Reach(hidden=(*PRIVATE, *homes), workspace=real_workspace)
    hooks = hook_folders(real_workspace, shared_git)
    return Surroundings(
        user_home=real_home,
        lyma_homes=homes,
        links=tuple(link for home in named for link in links_on(home)),
        workspace=real_workspace,
        shared_git=shared_git,
        caches=tuple(cache_folders(real_home)),
        read_only=(*hooks, *_own_package(real_workspace)),
        held=folders_above(hooks, real_workspace),
        hidden_sockets=unix_sockets.to_hide(unix_sockets.named_sockets(), reach),
        run_files=(*run_files(), *own_programs()),
        as_root=os.geteuid() == 0,
    )


def links_on(path: Path) -> list[Path]:
    """The real places of the symbolic links on the way to `path`."""
    steps = (*reversed(path.parents), path)
    return [step.parent.resolve() / step.name for step in steps if step.is_symlink()]


def shared_git_folder(workspace: Path) -> Path | None:
    """Of a git worktree: the folder that it shares with its repository, if that too says that they belong together.

    Only then: a file of the workspace alone must not open a folder elsewhere.
    """
    marker = workspace / ".git"
    try:
        folder = (workspace / _text(marker).removeprefix("gitdir:").strip()).resolve()
        points_back = _text(folder / "gitdir").strip()
        common = (folder / _text(folder / "commondir").strip()).resolve()
    except (OSError, ValueError):
        return None
    belongs = Path(points_back) == marker and contains(common / "worktrees", folder)
    return common if belongs and (common / "HEAD").is_file() else None


def _text(path: Path) -> str:
    """What one of git's small files says. Raises OSError, ValueError."""
    return read_regular(path, PATH_MAX).decode()


def hook_folders(workspace: Path, shared_git: Path | None) -> list[Path]:
    """Where git looks for programs to run on its own."""
    folders = [workspace / ".git", *([shared_git] if shared_git else [])]
    modules = [module for folder in folders for module in folder.glob("modules/*")]
    hooks = [folder / "hooks" for folder in (*folders, *modules) if (folder / "HEAD").is_file()]
    for folder in hooks:
        folder.mkdir(exist_ok=True)
    return [folder for folder in hooks if folder.is_dir() and not folder.is_symlink()]


def folders_above(places: Iterable[Path], workspace: Path) -> tuple[Path, ...]:
    """The folders between the workspace and each of `places`, outer ones first; a link is none."""
    found = {parent for place in places for parent in place.parents if workspace in parent.parents}
    return tuple(sorted(folder for folder in found if not folder.is_symlink()))


def cache_folders(user_home: Path) -> list[Path]:
    """The caches of the tools that are here, made where they are missing, since a command could not make them."""
    found = []
    for name, tool in CACHES.items():
        folder = user_home / name
        if not folder.is_dir() and (not tool or shutil.which(tool)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_dir() and contains(user_home, folder.resolve()):
            found.append(folder.resolve())
    return found


def run_files() -> list[Path]:
    """Which parts of /run programs cannot do without; no socket is among them."""
    wanted = [*RUN_FILES, str(RESOLVER.resolve())]
    return [Path(name) for name in dict.fromkeys(wanted) if name.startswith("/run/") and Path(name).exists()]


def own_programs() -> list[Path]:
    """Our interpreter and our code where they lie in a folder that commands have their own of."""
    places = outermost(tuple(Path(place).resolve() for place in (sys.prefix, sys.base_prefix, PACKAGE)))
    return [place for place in places if is_private(place) and place not in PRIVATE]


def _own_package(workspace: Path) -> list[Path]:
    """Our own code, unless it is what is being worked on."""
    return [] if contains(workspace, PACKAGE) else [PACKAGE]
