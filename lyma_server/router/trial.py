"""One attempt of a model call, from the request to its verdict. Knows when the answer was shown: the commit point."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from attrs import define, evolve, field

from lyma_server.router.chat import Completed, TextDelta, ThinkingDelta, ToolCallDelta
from lyma_server.router.policy import Failure
from lyma_server.router.providers.base import AttemptFailed, Call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from lyma_server.router.chat import ChatEvent, ChatRequest
    from lyma_server.router.fleet import Station
    from lyma_server.router.providers.base import Adapter, Key
    from lyma_server.router.watchdog import Watchdog


class Models(Protocol):
    """Finds out which model "auto" means."""

    async def resolve(self, station: Station, key: Key, watchdog: Watchdog) -> str:
        """The model to ask for. Raises AttemptFailed."""

    def forget(self, provider: str) -> None:
        """What was found out for this provider no longer holds."""


@define(eq=False)
class Trial:
    """An attempt at `station` with the key of this fingerprint. `failure` or `completed` says how it ended.

    A refusal before the commit point has both: another provider may answer, and where none does it is the answer.
    """

    station: Station
    fingerprint: str
    request: ChatRequest
    without: frozenset[str] = frozenset()
    history: str = "faithful"
    model: str = ""
    started: float = field(factory=lambda: asyncio.get_running_loop().time())
    committed: bool = False
    thought: bool = False
    said: list[str] = field(factory=list)
    headers: dict[str, str] = field(factory=dict)
    failure: Failure | None = None
    public: str = ""
    completed: Completed | None = None

    @property
    def key(self) -> Key:
        return self.station.keys[self.fingerprint]

    @property
    def ms(self) -> int:
        """Milliseconds since it began."""
        return round((asyncio.get_running_loop().time() - self.started) * 1000)

    async def run(self, adapter: Adapter, models: Models, watchdog: Watchdog) -> AsyncGenerator[ChatEvent]:
        """Stream the attempt. Never raises but when it is given up from outside; `Completed` is kept, not streamed."""
        try:
            self.model = await models.resolve(self.station, self.key, watchdog)
            async with aclosing(adapter.stream(self._call(), watchdog)) as events:
                async for event in events:
                    if self._note(event):
                        yield event
        except AttemptFailed as failed:
            self.failure = evolve(failed.failure, committed=self.committed)
            self.public = failed.public
        finally:
            watchdog.stop()

    def _call(self) -> Call:
        return Call(
            request=self.request,
            provider=self.station.provider,
            key=self.key,
            model=self.model,
            without=self.without,
            history="padded" if self.history == "padded" else "plain" if self.history == "plain" else "faithful",
            heard=self.headers.update,
        )

    def _note(self, event: ChatEvent) -> bool:
        """Keep what the verdict will need; whether the event is to be passed on."""
        kind = type(event)
        if kind is TextDelta:
            self.committed = True
            self.said.append(event.text)  # type: ignore[union-attr]  # by its type; isinstance costs more a chunk
        elif kind is ToolCallDelta:
            self.committed = True
        elif kind is ThinkingDelta:
            self.thought = True
        elif isinstance(event, Completed):
            self.completed = event
            if event.finish == "refusal" and not self.committed:
                self.failure = Failure(self.station.provider.name, "semantic", 200, body={"finish_reason": "refusal"})
            return False
        return True
