"""What bounds the commands of a session, as plain data: which paths are hidden, writable, read-only. Who enforces it is
another module's part (bwrap.py, landlock.py). Every path is absolute and real.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from attrs import frozen

from lyma_server.errors import ConfigError, MaskUnavailable

Write: TypeAlias = Literal["workspace", "everywhere"]

ROOT = Path("/")
PRIVATE = (Path("/tmp"), Path("/run"))  # noqa: S108 - named to be hidden
"""Where other programs have sockets and temporary files. Commands have their own, with what is shown in them."""


@frozen(kw_only=True)
class Surroundings:
    """What was found on this machine; nothing in it is a choice of the user's."""

    user_home: Path
    lyma_homes: tuple[Path, ...]
    """Real paths of every folder that Lyma may take for its home; all exist."""
    links: tuple[Path, ...] = ()
    """Real places of the symbolic links by which a home of Lyma is reached, if any."""
    workspace: Path
    shared_git: Path | None = None
    """The common folder of a git worktree, outside the workspace."""
    caches: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    """Git hooks, and Lyma's own package."""
    held: tuple[Path, ...] = ()
    """Folders of the workspace above those hooks."""
    hidden_sockets: tuple[Path, ...] = ()
    """Sockets of other programs, outside /tmp and /run."""
    run_files: tuple[Path, ...] = ()
    """What programs need of /run, such as the file that resolv.conf is a link to, and our own where it lies there or in /tmp."""
    as_root: bool = False


@frozen(kw_only=True)
class Confinement:
    """All that bounds a command. `masked` are empty and read-only, whatever else is said."""

    workspace: Path
    masked: tuple[Path, ...]
    write: Write
    writable: tuple[Path, ...]
    pinned: tuple[Path, ...]
    """Folders that may not be renamed, since the mask lies below them."""
    held: tuple[Path, ...]
    """Writable folders that may not be renamed, since what is read-only lies below them: else a copy takes its place."""
    read_only: tuple[Path, ...]
    hidden_sockets: tuple[Path, ...]
    shown: tuple[Path, ...]
    """What is shown of /run and /tmp, to be read, and the sockets that the user lets back in."""
    sockets: tuple[Path, ...]
    """Those that the user lets back in."""
    as_root: bool


def confine(
    around: Surroundings, *, write: Write = "workspace", writable: tuple[Path, ...] = (), sockets: tuple[Path, ...] = ()
) -> Confinement:
    """Decide the bounds. `writable` and `sockets` are real paths from the user's settings.

    Raises MaskUnavailable where Lyma's home could not be kept from commands: the workspace has to do with it, or it is
    reached by a link that commands could replace; and where the workspace would be shared with other programs. Raises ConfigError for a folder that may not be writable.
    """
    _check_workspace(around)
    for folder in writable:
        if reason := why_not_writable(folder, around):
            raise ConfigError(
                f"{folder} may not be made writable by executor.writable: {reason}; name another folder.",
                key="executor.writable",
            )
    found = (*((around.shared_git,) if around.shared_git else ()), *around.caches)
    harmless = [folder for folder in found if not why_not_writable(folder, around)]
    open_folders = (around.workspace, *harmless, *writable)
    for link in around.links:
        if write == "everywhere" or any(contains(folder, link) for folder in open_folders):
            raise MaskUnavailable(
                f"Lyma's home is reached by the symbolic link {link}, which commands could replace, so none runs; "
                "set LYMA_HOME to the real path."
            )
    masked = outermost(around.lyma_homes)
    everywhere = write == "everywhere"
    return Confinement(
        workspace=around.workspace,
        masked=masked,
        write=write,
        writable=outermost(tuple(path for path in open_folders if not everywhere or is_private(path))),
        pinned=ancestors(masked) if everywhere else (),
        held=around.held,
        read_only=around.read_only,
        hidden_sockets=tuple(path for path in around.hidden_sockets if path not in sockets),
        shown=(*around.run_files, *sockets),
        sockets=sockets,
        as_root=around.as_root,
    )


def _check_workspace(around: Surroundings) -> None:
    for home in around.lyma_homes:
        if related(around.workspace, home):
            raise MaskUnavailable(
                f"The workspace {around.workspace} and Lyma's home {home} lie in each other, so no command runs; "
                "work in another folder."
            )
    if around.workspace in PRIVATE:
        raise MaskUnavailable(
            f"The workspace {around.workspace} holds temporary files and sockets of other programs, so no command runs; "
            "work in a folder of its own."
        )


def why_not_writable(folder: Path, around: Surroundings) -> str | None:
    """The reason to keep a folder from being written: its loss or change would undo the rest."""
    if contains(folder, around.user_home):
        return "it holds your home"
    if related(folder, around.user_home / ".ssh"):
        return "it has to do with .ssh"
    if any(related(folder, home) for home in around.lyma_homes):
        return "it has to do with Lyma's own home"
    return None


def contains(folder: Path, path: Path) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return folder == path or folder in path.parents


def is_private(path: Path) -> bool:
    """Whether commands have another in its place, unless it is shown to them."""
    return any(contains(folder, path) for folder in PRIVATE)


def related(one: Path, other: Path) -> bool:
    """Whether one of them lies in the other, or they are the same."""
    return contains(one, other) or contains(other, one)


def outermost(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Each path once, without those that lie in another."""
    unique = sorted(set(paths))
    return tuple(path for path in unique if not any(other in path.parents for other in unique))


def ancestors(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """All folders above `paths`, outer ones first, without `/`."""
    return tuple(sorted({parent for path in paths for parent in path.parents if parent != ROOT}))
