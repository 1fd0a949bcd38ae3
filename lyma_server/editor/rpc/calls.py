"""The requests that wait for their reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from lyma_server.editor.rpc.envelope import Id
    from lyma_server.protocol.base import Json


class Call:
    """A request under way. `params` are structured."""

    def __init__(self, identity: Id, method: str, params: Json) -> None:
        self.id = identity
        self.method = method
        self.params = params
        self.task: asyncio.Future[Json] | None = None
        self._cancel: Callable[[], None] | None = None

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """From now on a cancellation calls `cancel`, and the handler still gives the result."""
        self._cancel = cancel

    def cancel(self) -> None:
        """The client does not want to wait any longer."""
        if self._cancel is not None:
            self._cancel()
        elif self.task is not None:
            self.task.cancel()


class Calls:
    """The calls in flight. Each leaves exactly once, and whoever takes it out replies."""

    def __init__(self) -> None:
        self._calls: dict[Id, Call] = {}

    def __contains__(self, identity: Id) -> bool:
        return identity in self._calls

    def add(self, call: Call) -> None:
        """Take `call` in."""
        self._calls[call.id] = call

    def take(self, call: Call) -> bool:
        """Take `call` out; false where it is out already."""
        return self._calls.pop(call.id, None) is not None

    def cancel(self, identity: Id) -> None:
        """Cancel a call; one that is not there has been answered."""
        if (call := self._calls.get(identity)) is not None:
            call.cancel()

    def cancel_all(self) -> None:
        """Cancel all of them."""
        for call in list(self._calls.values()):
            call.cancel()
