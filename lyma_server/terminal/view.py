"""From events to what is written: three ways, each a pure state machine that a printer feeds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, Protocol

from attrs import define, frozen

from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.events import ItemCompleted, ItemDelta, ItemDiscarded, ItemStarted, Route
from lyma_server.protocol.items import TextItem
from lyma_server.terminal.notes import note
from lyma_server.terminal.plain import plain, plain_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.protocol.events import Event


@frozen
class Chunk:
    """Text for one of the two streams."""

    stream: Literal["out", "err"]
    text: str


class View(Protocol):
    """What to write for each event, in order."""

    def feed(self, event: Event) -> Iterator[Chunk]:
        """Write what is new."""

    def finish(self) -> Iterator[Chunk]:
        """Leave the cursor at the start of a line."""


class JsonView:
    """An event a line, the same objects as `lyma/event`."""

    def feed(self, event: Event) -> Iterator[Chunk]:
        yield Chunk("out", json_line(unstructure(event)))

    def finish(self) -> Iterator[Chunk]:
        return iter(())


@define
class WholeView:
    """For a pipe: text once it is complete, so that nothing void is ever in it; the notes beside it."""

    spoken: bool = False
    failing: bool = False

    def feed(self, event: Event) -> Iterator[Chunk]:
        body = event.body
        if isinstance(body, ItemCompleted) and isinstance(body.item, TextItem):
            if body.item.text:
                yield Chunk("out", ("\n" if self.spoken else "") + body.item.text.rstrip("\n") + "\n")
                self.spoken = True
        elif line := remark(self, body):
            yield Chunk("err", line + "\n")

    def finish(self) -> Iterator[Chunk]:
        return iter(())


@define
class LiveView:
    """For a terminal: text as it comes. Control characters of others are shown and not obeyed."""

    spoken: bool = False
    failing: bool = False
    item: str | None = None
    text: str = ""
    shown: str = ""

    def feed(self, event: Event) -> Iterator[Chunk]:
        body = event.body
        if isinstance(body, ItemStarted) and isinstance(body.item, TextItem):
            yield from self.finish()
            self.item, self.text = body.item.id, ""
            yield from self._say(body.item.text)
        elif isinstance(body, ItemDelta) and body.item == self.item:
            yield from self._say(body.text)
        elif isinstance(body, ItemCompleted) and isinstance(body.item, TextItem):
            yield from self._complete(body.item)
        elif line := remark(self, body):
            yield from self.finish()
            yield Chunk("err", line + "\n")
        if isinstance(body, ItemDiscarded) and body.item == self.item:
            self.item, self.text = None, ""

    def finish(self) -> Iterator[Chunk]:
        if self.shown and not self.shown.endswith("\n"):
            yield Chunk("out", "\n")
        self.shown = ""

    def _say(self, text: str) -> Iterator[Chunk]:
        self.text += text
        written = plain(text)
        if not written:
            return
        if self.spoken and self.text == text:
            yield Chunk("out", "\n")
        self.spoken, self.shown = True, written[-1:]
        yield Chunk("out", written)

    def _complete(self, item: TextItem) -> Iterator[Chunk]:
        """The complete item stands: what the deltas left out is added; where they differ, it is written anew."""
        if item.id != self.item:
            self.text = ""
        elif not item.text.startswith(self.text):
            yield from self.finish()
            self.text = ""
        yield from self._say(item.text[len(self.text) :])
        yield from self.finish()
        self.item, self.text = None, ""


def remark(view: WholeView | LiveView, body: object) -> str | None:
    """The note for an event; an attempt that succeeds after others failed is worth one too."""
    if isinstance(body, Route):
        if body.class_ == "ok" and view.failing:
            view.failing = False
            return plain_line(f"answered by {body.provider} {body.model}")
        view.failing = body.class_ != "ok"
    line = note(body)
    return plain_line(line) if line else None


def json_line(value: object) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
