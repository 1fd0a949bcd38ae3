"""From a confinement to the arguments of bubblewrap. The order decides: what comes later covers what came before.

Measured on bubblewrap 0.8 and 0.11: a bind after the mask shows the masked folder again; `--tmpfs` alone is writable;
`--remount-ro` closes it; a mount point that is missing or a symbolic link makes bwrap fail, so nothing runs unmasked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lyma_server.isolation.confinement import is_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from lyma_server.isolation.confinement import Confinement

ROOT_CAPABILITIES: Final = ("DAC_OVERRIDE", "CHOWN", "FOWNER", "FSETID", "SETUID", "SETGID")
"""What root keeps: work in other users' files. Without the drop, root could mount `/` writable again."""

LIFE: Final = ("--die-with-parent", "--new-session")
NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
DEVICES: Final = ("--dev", "/dev")
"""A new /dev with the harmless few: no block device can be named, and none can be made."""

KERNEL: Final = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--ro-bind", "/sys", "/sys")
PRIVATE: Final = ("--perms", "1777", "--tmpfs", "/tmp", "--perms", "0755", "--tmpfs", "/run")  # noqa: S108
"""Sockets of editors, tmux, docker and systemd live there; through them a command would reach out."""


def bwrap_arguments(confinement: Confinement) -> list[str]:
    """All that goes between `bwrap` and the program to run."""
    return [
        *LIFE,
        *NAMESPACES,
        *_privileges(confinement),
        *(("--bind" if confinement.write == "everywhere" else "--ro-bind"), "/", "/"),
        *_pins(confinement.pinned),
        *DEVICES,
        *KERNEL,
        *PRIVATE,
        *_binds("--ro-bind-try", confinement.shown),
        *_binds("--bind", confinement.writable),
        *_binds("--bind-try", confinement.held),
        *_binds("--ro-bind-try", confinement.read_only),
        *_hide(confinement.hidden_sockets),
        *_masks(confinement.masked),
    ]


def _privileges(confinement: Confinement) -> Iterator[str]:
    """As root no user namespace: there a workspace of another user could not be written."""
    if not confinement.as_root:
        yield "--unshare-user"
    yield from ("--cap-drop", "ALL")
    if confinement.as_root:
        for capability in ROOT_CAPABILITIES:
            yield from ("--cap-add", f"CAP_{capability}")


def _pins(folders: Iterable[Path]) -> Iterator[str]:
    """A mount point cannot be renamed, so a new folder cannot take the place of one above the mask."""
    for folder in folders:
        if not is_private(folder):
            yield from ("--bind", str(folder), str(folder))


def _binds(option: str, paths: Iterable[Path]) -> Iterator[str]:
    for path in sorted(paths):
        yield from (option, str(path), str(path))


def _hide(sockets: Iterable[Path]) -> Iterator[str]:
    for socket in sorted(sockets):
        yield from ("--ro-bind", "/dev/null", str(socket))


def _masks(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        yield from ("--perms", "0700", "--tmpfs", str(folder), "--remount-ro", str(folder))
