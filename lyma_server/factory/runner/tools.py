"""Carries out the calls of tools: those for files, and the agent's own, whose code is loaded when it is first called."""

from __future__ import annotations

import json
from pathlib import Path

from lyma_server.factory.runner.files import Files, ToolFault

TYPE_CHECKING = False  # to load typing would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, TypeAlias

    Tool: TypeAlias = Callable[[dict[str, Any]], Any]

AGENT: Final = Path("/agent")
LARGEST: Final = 64 << 10
"""Bytes of one result, as JSON; all results of a step must go into one message."""
LARGEST_TOGETHER: Final = 900 << 10
CUT: Final = "\n[cut; ask for less]"


class Tools:
    """The tools of one agent, by name. `own` are the tables of its manifest."""

    def __init__(self, files: Files, own: list[dict[str, Any]], agent: Path = AGENT) -> None:
        self._files = files
        self._own = {tool["name"]: agent / tool["file"] for tool in own}
        self._loaded: dict[str, Tool] = {}

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The text of the result, and whether it is an error. Whatever a tool does, it is no error of ours."""
        try:
            return as_text(self._find(name)(arguments)), False
        except ToolFault as fault:
            return str(fault), True
        except MemoryError:
            return f"{name} ran out of memory.", True
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is not ours
            return f"{name} failed: {type(error).__name__}: {error}", True

    def _find(self, name: str) -> Tool:
        if name in self._files.tools:
            return self._files.tools[name]
        if name not in self._own:
            raise ToolFault(f"There is no tool {name}.")
        if name not in self._loaded:
            self._loaded[name] = load(self._own[name])
        return self._loaded[name]


def load(file: Path) -> Tool:
    """The function `run` of a tool's code, which runs for that in a module of its own."""
    names: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), names)  # noqa: S102 - this is where it may run
    run: Tool = names["run"]
    return run


def as_text(result: Any) -> str:
    """What a tool gave back, as a text: JSON where it is none."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, allow_nan=False)


def fitted(text: str, calls: int) -> str:
    """The text, cut so that the results of so many calls fit one message."""
    most = min(LARGEST, LARGEST_TOGETHER // max(1, calls))
    text = text.encode("utf-8", "replace").decode()
    if size(text) <= most:
        return text
    while size(text) > most - len(CUT) * 2:
        text = text[: len(text) * 3 // 4]
    return text + CUT


def size(text: str) -> int:
    """Bytes, as JSON."""
    return len(json.dumps(text, ensure_ascii=False).encode())
