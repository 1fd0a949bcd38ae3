"""The tasks, one folder each.

`request.txt` is what is asked, `before/` the repository, `check.py` judges it after, and `script.json` is what a scripted
model says: steps of `calls` (name and arguments) or of what it will `say`; `told` must stand in what the tools answered
to the step before.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from attrs import frozen

from lyma_server.terminal.scripted import Reply

HERE = Path(__file__).resolve().parent
FACTS = HERE / "facts.py"


@frozen
class Step:
    """One answer of the scripted model."""

    reply: Reply
    told: str = ""


@frozen
class Task:
    """A folder of the catalogue."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def request(self) -> str:
        return (self.folder / "request.txt").read_text(encoding="utf-8").strip()

    @property
    def steps(self) -> tuple[Step, ...]:
        rows = json.loads((self.folder / "script.json").read_text(encoding="utf-8"))
        return tuple(_step(row) for row in rows)

    def lay_out(self, place: Path) -> Path:
        """Copy all that the check needs below `place`, which is made; returns the repository to work in."""
        place.mkdir()
        for name in ("before", "work"):
            shutil.copytree(self.folder / "before", place / name)
        shutil.copy(self.folder / "check.py", place)
        shutil.copy(FACTS, place)
        return place / "work"


def tasks(*names: str) -> tuple[Task, ...]:
    """Those that are named, or all. Raises LookupError for a name that there is not."""
    known = {path.parent.name: Task(path.parent) for path in sorted(HERE.glob("*/request.txt"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LookupError(f"there is no task {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in names or known)


def _step(row: dict[str, Any]) -> Step:
    calls = tuple((name, arguments) for name, arguments in row.get("calls", ()))
    return Step(Reply(row.get("say", ""), calls), row.get("told", ""))
