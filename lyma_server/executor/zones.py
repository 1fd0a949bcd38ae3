"""Places that matter, as a tree of names: whether a path is one of them, around one, in one, or all that lies in one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import Factory, define, frozen

from lyma_server.executor.marks import is_plain
from lyma_server.executor.paths import covers, takes_everything

if TYPE_CHECKING:
    from collections.abc import Iterable


@frozen
class Zone:
    """A place. `parts` are the components of its path; None stands for any one name."""

    parts: tuple[str | None, ...]
    label: str


@define
class _Node:
    label: str | None = None
    nearest: str | None = None
    children: dict[str | None, _Node] = Factory(dict)


@lru_cache(maxsize=4096)
def split_path(path: str) -> tuple[str, ...]:
    """The components of an absolute path."""
    return tuple(path.split("/")[1:]) if path != "/" else ()


def zone_of(path: str, label: str = "") -> Zone:
    """The place at a plain absolute path."""
    return Zone(tuple(part for part in path.split("/") if part), label)


class ZoneTree:
    """Zones to ask about. The answers are labels, None where the answer is no."""

    def __init__(self, zones: Iterable[Zone]) -> None:
        self._root = _Node()
        for zone in sorted(zones, key=lambda zone: len(zone.parts)):
            self._add(zone)

    def _add(self, zone: Zone) -> None:
        node = self._root
        for part in zone.parts:
            node.nearest = node.nearest if node.nearest is not None else zone.label
            node = node.children.setdefault(part, _Node())
        node.label = node.label if node.label is not None else zone.label
        node.nearest = node.nearest if node.nearest is not None else zone.label

    def at(self, path: str) -> str | None:
        """The zone that `path` is, exactly."""
        return next((node.label for node in self._walk(split_path(path)) if node.label is not None), None)

    def around(self, path: str) -> str | None:
        """A zone that `path` is, or that lies in it."""
        nodes = self._walk(split_path(path))
        return next((node.nearest for node in nodes if node.nearest is not None), None)

    def holding(self, path: str) -> str | None:
        """A zone that `path` is, or lies in."""
        nodes = [self._root]
        if self._root.label is not None:
            return self._root.label
        plain = is_plain(path)
        for part in split_path(path):
            nodes = _step(nodes, part, plain=plain)
            if not nodes:
                return None
            for node in nodes:
                if node.label is not None:
                    return node.label
        return None

    def emptied(self, path: str) -> str | None:
        """A zone that is emptied when all that `path` stands for goes."""
        parts = split_path(path)
        if not parts or not takes_everything(parts[-1]):
            return None
        return next((node.label for node in self._walk(parts[:-1]) if node.label is not None), None)

    def _walk(self, parts: tuple[str, ...]) -> list[_Node]:
        nodes = [self._root]
        for part in parts:
            nodes = _step(nodes, part, plain=is_plain(part))
            if not nodes:
                break
        return nodes


def _step(nodes: list[_Node], part: str, *, plain: bool) -> list[_Node]:
    """The nodes below that one component, perhaps with active patterns, may stand for; a `plain` one has none."""
    found: list[_Node] = []
    for node in nodes:
        children = node.children
        if not plain:
            found += [child for name, child in children.items() if name is not None and covers(part, name)]
        elif part in children:
            found.append(children[part])
        if None in children:
            found.append(children[None])
    return found
