"""What a cell is made of, as the arguments of bubblewrap: nothing is in it but what is named here.

The order decides: what comes later covers what came before, and `/` is closed last. Descriptors are given by number.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

APART: Final = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
)
WHO: Final = ("--uid", "1000", "--gid", "1000", "--hostname", "lyma")
"""The same on every machine, so that nothing inside tells whose it is."""

PROGRAMS: Final = ("--ro-bind", "/usr", "/usr")
SYSTEM_LINKS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

KERNEL: Final = (
    "--proc",
    "/proc",
    "--perms",
    "0555",
    "--size",
    "4096",
    "--tmpfs",
    "/proc/sys",
    "--remount-ro",
    "/proc/sys",
    "--perms",
    "0555",
    "--size",
    "4096",
    "--tmpfs",
    "/proc/1",
    "--remount-ro",
    "/proc/1",
)
"""As uid 0 of the host `/proc/sys/kernel/core_pattern` opens for writing even in here, so nothing of it is there. And the
first process is bubblewrap, to which no limit and no inner filter applies: whoever writes its memory has left them behind."""

DEVICES: Final = ("--dev", "/dev", "--remount-ro", "/dev")
"""Without the second part /dev/shm is a memory that no limit counts."""

CLOSED: Final = ("--remount-ro", "/")

INPUT, WORK, TREE = "/in", "/work", "/tree"
"""Where the staged files, the scratch space, and an external program's files lie."""


@frozen(kw_only=True)
class Contents:
    """`files` are descriptors by the path inside; `input_folder` and `tree` folders outside that whoever starts
    bubblewrap may enter.
    """

    files: Mapping[str, int]
    input_folder: Path
    tree: Path | None
    scratch_bytes: int
    outer_filter: int
    info: int


def cell_arguments(contents: Contents) -> list[str]:
    """All that goes between `bwrap` and the first program inside."""
    return [
        *APART,
        *WHO,
        *PROGRAMS,
        *_links(),
        *KERNEL,
        *DEVICES,
        *_scratch(contents.scratch_bytes),
        *_folders(contents),
        *_files(contents.files),
        *CLOSED,
        *("--chdir", WORK),
        *("--info-fd", str(contents.info)),
        *("--add-seccomp-fd", str(contents.outer_filter)),
    ]


def _links() -> Iterator[str]:
    """/bin and its like: links where the system has links, its folders where it has folders."""
    for name in SYSTEM_LINKS:
        place = Path("/", name)
        if place.is_symlink():
            yield from ("--symlink", f"usr/{name}", str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))


def _scratch(size: int) -> Iterator[str]:
    yield from ("--perms", "0700", "--size", str(size), "--tmpfs", WORK, "--symlink", "work", "/tmp")  # noqa: S108


def _folders(contents: Contents) -> Iterator[str]:
    yield from ("--ro-bind", str(contents.input_folder), INPUT)
    if contents.tree is not None:
        yield from ("--ro-bind", str(contents.tree), TREE)


def _files(files: Mapping[str, int]) -> Iterator[str]:
    """As bytes: no path is opened a second time."""
    for path, descriptor in files.items():
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptor), path)
