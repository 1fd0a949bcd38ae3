"""Judges what is about to be executed: the same rules as for a command, on the real words and the real file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.executor.identity import Identities, Unrecognisable
from lyma_server.executor.paths import SEEN_FROM
from lyma_server.executor.tools import DESTRUCTIVE
from lyma_server.executor.verdict import judge_exec
from lyma_server.isolation.guard import Refusal

if TYPE_CHECKING:
    from lyma_server.isolation.exec_request import ExecRequest


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

    def __call__(self, request: ExecRequest) -> Refusal | None:
        try:
            tools: tuple[str | None, ...] = (self._identities.name(request),)
        except Unrecognisable:
            tools = DESTRUCTIVE
        before = SEEN_FROM.set(request.root)
        try:
            return next((refusal for tool in tools if (refusal := self._refusal(request, tool))), None)
        finally:
            SEEN_FROM.reset(before)

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
