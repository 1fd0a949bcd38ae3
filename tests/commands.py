"""The labelled commands, and how they are judged."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from lyma_server.executor import blacklist
from lyma_server.executor.verdict import Verdict, judge

if TYPE_CHECKING:
    from lyma_server.executor.rules.base import Case

DATA = Path(__file__).resolve().parent / "data"
CASES: list[Case] = []
HOME, WORKSPACE, LYMA_HOME = "/home/dev", "/home/dev/app", "/home/dev/.lyma"


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    """The rows of a data file: command, cwd, verdict, category."""
    return tuple(json.loads((DATA / name).read_text(encoding="utf-8")))


@cache
def row_verdict(command: str, cwd: str) -> Verdict:
    """The verdict on a row, found once for all tests. What was judged for it is in `CASES`."""
    find = blacklist.find_rule

    def note(case: Case) -> blacklist.Finding | None:
        CASES.append(case)
        return find(case)

    with mock.patch.object(blacklist, "find_rule", note):
        return judged(command, cwd)


def judged(command: str, cwd: str = WORKSPACE, **more: Any) -> Verdict:
    facts = {"home": HOME, "workspace": WORKSPACE, "lyma_home": LYMA_HOME, **more}
    return judge(command, cwd=cwd, **facts)


def blocked(command: str, cwd: str = WORKSPACE, **more: Any) -> bool:
    return judged(command, cwd, **more).verdict == "block"
