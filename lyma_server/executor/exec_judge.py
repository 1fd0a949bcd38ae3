"""Judges what is about to be executed: the same rules as for a command, on the real words and the real file."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.executor.identity import LOADERS, MULTI_CALL, Identities, Unrecognisable
from lyma_server.executor.paths import SEEN_FROM
from lyma_server.executor.tools import DESTRUCTIVE
from lyma_server.executor.verdict import judge_exec
from lyma_server.isolation.exec_request import head_of
from lyma_server.isolation.guard import Refusal
from lyma_server.isolation.sight import Sight, identity_of

if TYPE_CHECKING:
    from lyma_server.isolation.exec_request import ExecRequest


LOADER_VALUES: Final = frozenset({
    "--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask",
})  # fmt: skip
"""Options of the loader that a value follows."""


@frozen
class Place:
    """What a verdict rests on, as absolute paths; `workspace` may be empty."""

    home: str
    workspace: str
    lyma_home: str


class ExecJudge:
    """Callable by the guard. A program that nobody may read is judged as every destructive one."""

    def __init__(self, place: Place, identities: Identities) -> None:
        self._place = place
        self._identities = identities
        self._known = known_folders(place)

    def __call__(self, request: ExecRequest) -> Refusal | None:
        before = SEEN_FROM.set(Sight(request.sight.pid, request.sight.root, KnownFolders(self._known)))
        try:
            tools = self._tools(request)
            refusal = next((refusal for tool in tools if (refusal := self._refusal(request, tool))), None)
            return refusal or self._inner(request, tools[0])
        finally:
            SEEN_FROM.reset(before)

    def _inner(self, request: ExecRequest, tool: str | None) -> Refusal | None:
        """Judge the program that this one is asked to be, or to run."""
        if is_loader(tool):
            return self._loaded(request)
        if tool in MULTI_CALL:  # under a name that it does not know it may take the next word
            return self._refusal(request._replace(argv=(tool, *request.argv[1:])), tool)
        return None

    def _tools(self, request: ExecRequest) -> tuple[str | None, ...]:
        """What the program may be: one tool or none, or any where it cannot be told."""
        try:
            return (self._identities.name(request),)
        except (Unrecognisable, OSError):
            return DESTRUCTIVE

    def _loaded(self, request: ExecRequest) -> Refusal | None:
        """Judge the program that a loader is given. It may be found by a search of its own, and is any program then."""
        words = _after_options(request.argv[1:])
        if not words:
            return None
        with ExitStack() as stack:
            try:
                file = request.open(words[0])
                stack.callback(os.close, file)
                status = os.fstat(file)
                inner = request._replace(
                    path=words[0], argv=words, file=file, status=status, head=head_of(file, status)
                )
            except OSError:
                inner = request._replace(path=words[0], argv=words, head=None)
                tools: tuple[str | None, ...] = DESTRUCTIVE
            else:
                tools = self._tools(inner)
            return next((refusal for tool in tools if (refusal := self._refusal(inner, tool))), None)

    def _refusal(self, request: ExecRequest, tool: str | None) -> Refusal | None:
        verdict = judge_exec(
            request.path,
            request.argv,
            request.cwd,
            tool=tool,
            home=self._place.home,
            workspace=self._place.workspace,
            lyma_home=self._place.lyma_home,
        )
        return None if verdict.allowed else Refusal(verdict.rule, verdict.part, verdict.reason, verdict.instead)


class KnownFolders:
    """What must not be lost, by device and inode. Made for one question: the number of a folder that is gone is given away."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._left = iter(folders)
        self._found: dict[tuple[int, int], str] = {}

    def __call__(self, identity: tuple[int, int]) -> str | None:
        """The one at `identity`, null where none is. No more of them are looked at than that takes."""
        while identity not in self._found:
            folder = next(self._left, None)
            if folder is None:
                return None
            with suppress(OSError):
                status = os.lstat(folder)  # a link that took its place is not the folder
                self._found.setdefault(identity_of(status), folder)
        return self._found[identity]


def known_folders(place: Place) -> tuple[str, ...]:
    """What must not be lost, and every folder above it. Of two names of one folder the first counts, so Lyma's home comes first."""
    real = [Path(path).resolve() for path in (place.lyma_home, place.home, place.workspace) if path]
    above = [folder for path in real for folder in path.parents]
    return tuple(dict.fromkeys(map(str, (*real, *above))))


def is_loader(tool: str | None) -> bool:
    """Whether it runs the program that it is given."""
    return tool is not None and tool.startswith(LOADERS)


def _after_options(words: tuple[str, ...]) -> tuple[str, ...]:
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in LOADER_VALUES else 1 :]
    return words
