"""The state of a shell while a command is read: what its variables, files and folders would be."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, define, evolve, frozen

from lyma_server.executor.marks import CREDENTIAL, SOMETHING, UNKNOWN, taints
from lyma_server.executor.paths import normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lyma_server.executor.invocation import Redirection
    from lyma_server.executor.places import Places
    from lyma_server.executor.syntax import Statement

Alternatives: TypeAlias = tuple[str, ...]
"""What one text may be, where branches of a command disagree."""

MAX_ALTERNATIVES = 24
MAX_TEXT = 64 * 1024


class TooComplex(Exception):
    """The command is too large to be followed to its end."""


def limit(texts: Iterable[str]) -> Alternatives:
    """Distinct alternatives, at most MAX_ALTERNATIVES; what is beyond becomes unknown text of the same origin."""
    distinct = tuple(dict.fromkeys(text if len(text) <= MAX_TEXT else UNKNOWN + taints(text) for text in texts))
    if len(distinct) <= MAX_ALTERNATIVES:
        return distinct
    return (*distinct[: MAX_ALTERNATIVES - 1], UNKNOWN + taints("".join(distinct)))


def join(parts: Iterable[Alternatives], separator: str = "") -> Alternatives:
    """Every way to put one alternative of each part after another."""
    whole: Alternatives | None = None
    for part in parts:
        whole = part if whole is None else limit(left + separator + right for left in whole for right in part)
    return whole if whole is not None else ("",)


@frozen
class Outcome:
    """What running something leaves: text on stdout; whether it succeeded (None: not known, then `assumed` says that it
    usually does); whether the shell ends here.
    """

    output: Alternatives = ("",)
    status: bool | None = None
    ends: bool = False
    assumed: bool = False


@define
class World:
    """Mutable while one shell is followed; `fork` before a subshell."""

    places: Places
    variables: dict[str, Alternatives]
    cwd: Alternatives
    arrays: dict[str, dict[str, str]] = Factory(dict)
    functions: dict[str, Statement] = Factory(dict)
    aliases: dict[str, str] = Factory(dict)
    positional: tuple[str, ...] = ()
    files: dict[str, Alternatives] = Factory(dict)
    twins: dict[str, str] = Factory(dict)
    options: set[str] = Factory(set)
    sinks: dict[str, tuple[Statement, ...]] = Factory(dict)
    links: dict[str, str] = Factory(dict)
    descriptors: dict[str, str] = Factory(dict)
    redirections: tuple[Redirection, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    stdin: Alternatives = ("",)
    piped: bool = False
    kept: tuple[Alternatives, bool] | None = None
    old_cwd: Alternatives = ()
    scopes: list[dict[str, Alternatives | None]] = Factory(list)
    references: dict[str, str] = Factory(dict)

    def fork(self) -> World:
        """A shell of its own with the same state; files are shared, since the disk is."""
        return evolve(
            self,
            variables=dict(self.variables),
            arrays={name: dict(items) for name, items in self.arrays.items()},
            functions=dict(self.functions),
            options=set(self.options),
            aliases=dict(self.aliases),
            descriptors=dict(self.descriptors),
            references=dict(self.references),
            scopes=[dict(scope) for scope in self.scopes],
        )

    def refer(self, name: str, target: str) -> None:
        """`declare -n name=target`: from now on both name the same variable. A circle is none, as in bash."""
        self.references.pop(name, None)
        if self._target(target) != name:
            self.references[name] = target

    def _target(self, name: str) -> str:
        while name in self.references:
            name = self.references[name]
        return name

    def set(self, name: str, values: Alternatives) -> None:
        name = self._target(name)
        self.arrays.pop(name, None)
        self.variables[name] = limit(values)

    def get(self, name: str) -> Alternatives | None:
        """The alternatives of a variable, None where it is not set."""
        name = self._target(name)
        if name in self.arrays:
            items = self.arrays[name]
            return (items.get("0", next(iter(items.values()), "")),)
        return self.variables.get(name)

    def home(self) -> Alternatives:
        return self.get("HOME") or (self.places.home,)

    def merge(self, other: World) -> None:
        """Take in what another branch may have left."""
        for name in {*self.variables, *other.variables}:
            mine, theirs = self.variables.get(name), other.variables.get(name)
            if mine != theirs:
                self.variables[name] = limit((*(mine or ("",)), *(theirs or ("",))))
        for name, items in other.arrays.items():
            self.arrays.setdefault(name, items)
        self.functions = {**self.functions, **other.functions}
        self.aliases = {**self.aliases, **other.aliases}
        self.cwd = limit((*self.cwd, *other.cwd))

    def locate(self, path: str) -> str:
        """The absolute path by which `files` knows a path; a descriptor has one name."""
        place = normalise(path, self.cwd[0] if self.cwd else "/")
        return place.replace("/proc/self/fd/", "/dev/fd/", 1) if place.startswith("/proc/self/fd/") else place

    def read(self, path: str) -> Alternatives | None:
        """What a file written by this command holds, None for any other."""
        return self.files.get(self.locate(path))

    def origin(self, path: str) -> str:
        """The mark of what a file on the disk holds, empty where it is an ordinary one."""
        return CREDENTIAL if self.places.holds_credentials(self.locate(path)) else ""

    def write(self, path: str, content: Alternatives, *, append: bool = False) -> None:
        place = self.locate(path)
        if append and place in self.files:
            content = join((self.files[place], content))
        self.files[place] = limit(content)
        self.twins.pop(place, None)


def start_world(places: Places, cwd: str, environment: Mapping[str, str]) -> World:
    """The state in which a command starts: `environment` is what it will really be given."""
    user = posixpath.basename(places.home)
    defaults = {"HOME": places.home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash"}
    given = {**defaults, **environment, "PWD": cwd, "IFS": " \t\n"}
    known: dict[str, Alternatives] = {
        name: (value,) for name, value in given.items() if name != "_" and not name.startswith("BASH_FUNC_")
    }
    computed = ("RANDOM", "SECONDS", "LINENO", "UID", "EUID", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "BASHPID",
                "BASH_VERSION", "EPOCHSECONDS", "EPOCHREALTIME", "SRANDOM", "SHLVL", "COLUMNS", "LINES")  # fmt: skip
    known |= {name: (SOMETHING,) for name in computed if name not in environment}
    return World(places=places, variables=known, cwd=(normalise(cwd, "/"),), old_cwd=(normalise(cwd, "/"),))
