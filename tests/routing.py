"""A router before stub providers, and what one call of it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config.model import RouterSettings, Settings
from lyma_server.errors import LymaError
from lyma_server.router.chat import ChatRequest, Completed, Message, Text, TextDelta
from lyma_server.router.providers.base import Key, Provider
from lyma_server.secret import Secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lyma_server.protocol.events import Attempt
    from lyma_server.router.chat import ChatEvent
    from lyma_server.router.router import Router
    from tests.stub_provider import StubProvider

FORMATS = ("openai", "anthropic")
QUESTION = (Message("user", (Text("question"),)),)


def make_keys(count: int, **accounts: str) -> tuple[Key, ...]:
    """Keys that can be told apart by their last characters; `k2="work"` labels the account of the second."""
    return tuple(Key(Secret(f"sk-test-{n}-abcdefghijk-{n}"), accounts.get(f"k{n}")) for n in range(1, count + 1))


def make_provider(stub: StubProvider | str, api: str = "openai", name: str = "one", **more: Any) -> Provider:
    """A provider at a stub (or at a URL)."""
    url = stub if isinstance(stub, str) else stub.openai_url if api == "openai" else stub.anthropic_url
    return Provider(name, api, url, more.pop("model", "m"), more.pop("keys", (Key(),)), **more)  # type: ignore[arg-type]


def make_settings(**router: Any) -> Settings:
    return Settings(router=RouterSettings(**router))


def make_request(**more: Any) -> ChatRequest:
    return ChatRequest("Be brief.", more.pop("messages", QUESTION), more.pop("session", "s"), **more)


@attrs.define
class Outcome:
    """What a call gave: its events, its attempts, and its error if it had one."""

    events: list[ChatEvent] = attrs.field(factory=list)
    attempts: list[Attempt] = attrs.field(factory=list)
    error: LymaError | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def completed(self) -> Completed:
        last = self.events[-1]
        assert isinstance(last, Completed)
        return last

    @property
    def route(self) -> list[tuple[str, str]]:
        """Class and next step of each attempt."""
        return [(attempt.class_, attempt.next) for attempt in self.attempts]

    @property
    def keys(self) -> list[str]:
        """The last character of the key of each attempt."""
        return [(attempt.key or "-")[-1] for attempt in self.attempts]


async def ask(router: Router, **request: Any) -> Outcome:
    """Make one call."""
    outcome = Outcome()
    try:
        events: AsyncIterator[ChatEvent] = router.stream(make_request(**request), outcome.attempts.append)
        async for event in events:
            outcome.events.append(event)
    except LymaError as error:
        outcome.error = error
    return outcome
