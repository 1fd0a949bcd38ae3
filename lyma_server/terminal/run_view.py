"""A run at a terminal: a line for each step, under the names of the runs that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from lyma_server.protocol.events import ItemCompleted, ItemDelta, ItemStarted
from lyma_server.protocol.items import RunItem
from lyma_server.terminal.notes import note
from lyma_server.terminal.plain import plain_line
from lyma_server.terminal.view import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.protocol.events import Event


@define
class RunView:
    """Everything goes to stderr: stdout is for the output."""

    names: dict[str, str] = field(factory=dict)

    def feed(self, event: Event) -> Iterator[Chunk]:
        body = event.body
        if isinstance(body, ItemStarted) and isinstance(body.item, RunItem):
            self.names[body.item.id] = " > ".join((*body.item.path, body.item.name))
        elif isinstance(body, ItemDelta) and body.item in self.names:
            for line in body.text.splitlines():
                yield Chunk("err", f"{plain_line(self.names[body.item])}: {plain_line(line)}\n")
        elif isinstance(body, ItemCompleted) and isinstance(body.item, RunItem):
            yield Chunk("err", f"{plain_line(self.names.pop(body.item.id, body.item.name))}: {body.item.status}\n")
        elif remark := note(body):
            yield Chunk("err", plain_line(remark) + "\n")

    def finish(self) -> Iterator[Chunk]:
        return iter(())
