"""Work-done progress: what an editor shows of a turn that knows nothing of Lyma."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from lyma_server.protocol.events import Event, ItemCompleted, ItemStarted, Notice, Route
from lyma_server.protocol.items import CommandOutputItem, EditItem, RunItem, TextItem, ThinkingItem, ToolCallItem

if TYPE_CHECKING:
    from concurrent.futures import Future

    from lyma_server.editor.server import LymaServer

TITLE: Final = "Lyma"
_WORDS: Final = {
    TextItem: "answering",
    ThinkingItem: "thinking",
    ToolCallItem: "using {name}",
    RunItem: "running {name}",
}
_DONE: Final = {CommandOutputItem: "ran {command}", EditItem: "edited {path}", RunItem: "ran {name}"}
_LONGEST: Final = 120


_numbers = itertools.count(1)


class Progress:
    """Begin, reports and end of one turn. A null `token` says nothing.

    With `create`, a client that brought no token and knows such reports is asked for one; what happens before it has
    agreed is told then, and nothing is told if it does not.
    """

    def __init__(self, server: LymaServer, token: str | int | None, *, create: bool = False) -> None:
        self._server = server
        self._create = create and token is None and server.client.has("window.workDoneProgress")
        self.token = f"lyma/{next(_numbers)}" if self._create else token
        self._waiting: list[dict[str, object]] | None = [] if self._create else None
        self._last = ""
        self._open = False

    def begin(self) -> None:
        """The turn has begun."""
        self._open = self.token is not None
        if self._create:
            asked = self._server.protocol.send_request("window/workDoneProgress/create", {"token": self.token})
            asked.add_done_callback(self._agreed)
        self._tell({"kind": "begin", "title": TITLE, "message": "asking", "cancellable": True})

    def _agreed(self, asked: Future[object]) -> None:
        waiting, self._waiting = self._waiting or [], None
        if asked.cancelled() or asked.exception() is not None:
            self._open = False
            return
        for value in waiting:
            self._send(value)

    def hear(self, event: Event) -> None:
        """Report what an event means to someone who waits."""
        message = describe(event)
        if message and message != self._last:
            self._last = message
            self._tell({"kind": "report", "message": message})

    def end(self, message: str) -> None:
        """The turn is over."""
        self._tell({"kind": "end", "message": message})
        self._open = False

    def _tell(self, value: dict[str, object]) -> None:
        if not self._open:
            return
        if self._waiting is not None:
            self._waiting.append(value)
        else:
            self._send(value)

    def _send(self, value: dict[str, object]) -> None:
        self._server.protocol.notify("$/progress", {"token": self.token, "value": value})


def describe(event: Event) -> str:
    """A few words for an event, none where it is of no interest."""
    body = event.body
    if isinstance(body, Route) and body.next != "done":
        return f"{body.provider}: {body.class_}, {body.next}"[:_LONGEST]
    if isinstance(body, Notice):
        return body.text[:_LONGEST]
    if isinstance(body, ItemStarted | ItemCompleted):
        words = _WORDS if isinstance(body, ItemStarted) else _DONE
        found = words.get(type(body.item), "")
        fields = {name: getattr(body.item, name, "") for name in ("name", "command", "path")}
        return found.format(**fields).splitlines()[0][:_LONGEST] if found else ""
    return ""
