"""What a program would be started with: the common ground between reading a command and judging it."""

from __future__ import annotations

import posixpath
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from attrs import frozen

from lyma_server.executor.marks import show
from lyma_server.executor.paths import follow_links, normalise, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_LINKS: Mapping[str, str] = MappingProxyType({})
NO_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
NO_ENVIRONMENT = NO_FILES


@frozen
class Redirection:
    """`descriptor` as a number, `target` a path (`/dev/tcp/...` included); `writes` and `reads` say which way it is open."""

    descriptor: str
    target: str
    writes: bool
    reads: bool


class Scene(NamedTuple):
    """Where a path of a program leads: its folder, folders of the machine seen under another name, links,
    copies and files made by the same command. `through_links`
    also follows links on the disk.
    """

    cwd: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...] = ()
    links: Mapping[str, str] = NO_LINKS
    twins: Mapping[str, str] = NO_LINKS
    files: Mapping[str, tuple[str, ...]] = NO_FILES
    through_links: bool = True

    def places(self, path: str) -> tuple[str, ...]:
        """Every absolute path that `path` may mean."""
        found: dict[str, None] = {}
        for folder in self.cwd:
            for place in resolve(path, folder, through_links=self.through_links):
                found.update(dict.fromkeys((place, *self._elsewhere(place))))
            if self.links and ".." in path.split("/"):
                found[self._walk(path, folder)] = None
        return tuple(found)

    def _walk(self, path: str, folder: str) -> str:
        """`path` step by step as the kernel goes it: `..` leads up from where a link leads, not from where it lies."""
        here = self._linked("/" if path.startswith("/") else normalise(folder, "/"))
        for part in path.split("/"):
            here = self._linked(normalise(part, here)) if part else here
        return here

    def _linked(self, place: str) -> str:
        moved = (replace_prefix(place, link, target) for link, target in self.links.items())
        return next((path for path in moved if path is not None), place)

    def _elsewhere(self, place: str) -> tuple[str, ...]:
        if not self.mounts and not self.links:
            return ()
        table = (*self.mounts, *self.links.items())
        moved = (replace_prefix(place, inside, outside) for inside, outside in table)
        return tuple(variant for path in moved if path is not None for variant in (path, follow_links(path)))


def replace_prefix(path: str, inside: str, outside: str) -> str | None:
    """`path` with the folder `inside` renamed, None where it does not lie there."""
    if path != inside and not path.startswith(inside.rstrip("/") + "/"):
        return None
    rest = path[len(inside.rstrip("/")) :]
    return (outside.rstrip("/") + rest) or "/"


class Invocation(NamedTuple):
    """One program with its arguments. `argv` may hold marks; `feeds` names the programs that read its output."""

    program: str
    argv: tuple[str, ...]
    scene: Scene
    stdin: tuple[str, ...] = ("",)
    piped: bool = False
    redirections: tuple[Redirection, ...] = ()
    feeds: tuple[str, ...] = ()
    environment: Mapping[str, tuple[str, ...]] = NO_ENVIRONMENT

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.argv[1:]

    @property
    def shown(self) -> str:
        """The command for a message."""
        return show(" ".join(self.argv))[:200]


@lru_cache(maxsize=1024)
def program_name(word: str) -> str:
    """The name by which tables know a program: no folder, no `.exe`, no version, no case on Windows-like names."""
    name = posixpath.basename(word.rstrip("/").replace("\\", "/"))
    return name[:-4].lower() if name.lower().endswith((".exe", ".cmd")) else name
