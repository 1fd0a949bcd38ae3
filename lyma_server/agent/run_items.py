"""What is told of runs while they work: an item for each, those below others included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import define, field

from lyma_server.protocol.events import ItemCompleted, ItemDelta, ItemStarted
from lyma_server.protocol.items import RunItem

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.ports import Emit
    from lyma_server.factory.outcome import RunEvent, RunResult

MOST_TOLD: Final = 1 << 16
"""Characters of progress kept of one run; the transcript has it all."""


@define
class _Told:
    """What was told of one run. `left` is how many more characters may be."""

    item: RunItem
    lines: list[str] = field(factory=list)
    left: int = MOST_TOLD


class RunItems:
    """Turns the events of runs into items."""

    def __init__(self, emit: Emit, new_item: Callable[[], str]) -> None:
        self._emit, self._new_item = emit, new_item
        self._open: dict[str, _Told] = {}
        self._closed: set[str] = set()
        self._root: str | None = None

    def begin(self, run_id: str, hash_: str, name: str, path: tuple[str, ...] = ()) -> None:
        """A run begins; `path` are the names of the runs above it."""
        if run_id in self._open or run_id in self._closed:
            return
        self._root = self._root or run_id
        item = RunItem(id=self._new_item(), run=run_id, hash=hash_, name=name, path=path)
        self._open[run_id] = _Told(item)
        self._emit(ItemStarted(item=item))

    def hear(self, event: RunEvent) -> None:
        """Something happened in a run."""
        if event.run_id not in self._open:
            self.begin(event.run_id, event.hash, event.path[-1] if event.path else "", event.path[:-1])
        if event.kind == "ended" and event.run_id == self._root:
            return  # its result says more, and follows
        if event.kind == "ended":
            self._complete(event.run_id, event.text.split(maxsplit=1)[0].rstrip(".:,") if event.text else None)
        elif event.kind != "started" and event.text:
            self._grow(event.run_id, event.text)

    def end(self, run_id: str, result: RunResult) -> None:
        """The run has its result."""
        if result.error is not None:
            self._grow(run_id, result.error.message)
        self._complete(run_id, result.status)

    def close(self) -> None:
        """Complete what is still open: it was cut off."""
        for run_id in reversed(list(self._open)):
            self._complete(run_id, "cancelled")

    def _grow(self, run_id: str, text: str) -> None:
        told = self._open.get(run_id)
        if told is None or told.left <= 0:
            return
        line = text[: told.left] + "\n"
        told.left -= len(line)
        told.lines.append(line)
        self._emit(ItemDelta(item=told.item.id, text=line))

    def _complete(self, run_id: str, status: str | None) -> None:
        told = self._open.pop(run_id, None)
        if told is None:
            return
        self._closed.add(run_id)
        item = told.item
        whole = RunItem(
            id=item.id,
            run=item.run,
            hash=item.hash,
            name=item.name,
            path=item.path,
            status=status,
            text="".join(told.lines),
        )
        self._emit(ItemCompleted(item=whole))
