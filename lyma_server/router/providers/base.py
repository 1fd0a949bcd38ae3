"""What the router and its providers agree on: who is asked, what is asked of them, and what is known when it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from attrs import field, frozen

from lyma_server.config.model import ProviderSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from lyma_server.router.chat import ChatEvent, ChatRequest
    from lyma_server.router.policy import Failure
    from lyma_server.router.watchdog import Watchdog
    from lyma_server.secret import Secret

AUTO = "auto"
"""In place of a model's name: the first that the server lists."""

Api: TypeAlias = Literal["openai", "anthropic", "embedded"]


@frozen
class Key:
    """A key of a provider; `secret` is null where the server wants none. `account` is the label that the user gave it."""

    secret: Secret | None = None
    account: str | None = None

    @property
    def masked(self) -> str | None:
        """What may be shown of it."""
        return None if self.secret is None else self.secret.masked

    @property
    def fingerprint(self) -> str:
        """What it is known by in state and ledger; "-" where the server wants no key."""
        return "-" if self.secret is None else self.secret.fingerprint


@frozen
class Provider:
    """A provider with its keys resolved. `model` is the default one, perhaps "auto"; `base_url` null is the SDK's own."""

    name: str
    api: Api
    base_url: str | None
    model: str
    keys: tuple[Key, ...] = (Key(),)
    settings: ProviderSettings = field(factory=ProviderSettings)


def _ignore(_headers: Mapping[str, str]) -> None:
    """Nobody wants the headers."""


@frozen
class Call:
    """One attempt: `request` put to `model` of `provider` with `key`.

    `without` names the parameters that this model is known to refuse. `history` "plain" sends no thinking at all, "padded"
    supplies it where the server demands what is not there. `heard` is given the headers of an answer (lower-case names).
    """

    request: ChatRequest
    provider: Provider
    key: Key
    model: str
    without: frozenset[str] = frozenset()
    history: Literal["faithful", "plain", "padded"] = "faithful"
    heard: Callable[[Mapping[str, str]], None] = _ignore


class AttemptFailed(Exception):
    """An attempt failed. Only facts: `failure` may hold text of the server and so must not be shown as it stands.

    `public` is a sentence of our own, where there is more to say than the class of the failure tells.
    """

    def __init__(self, failure: Failure, public: str = "") -> None:
        super().__init__(failure.provider, failure.phase, failure.status)
        self.failure = failure
        self.public = public


@frozen
class ListedModel:
    """A model that a provider lists; `context_tokens` is null where it does not say."""

    id: str
    context_tokens: int | None = None


class Adapter(Protocol):
    """One wire format. Safe to use from one event loop; nothing heavy is imported before `warm_up` or the first call."""

    async def warm_up(self) -> None:
        """Import what the first call needs, off the event loop."""

    def stream(self, call: Call, watchdog: Watchdog) -> AsyncGenerator[ChatEvent]:
        """Make one attempt and stream it; ends after `Completed`. Raises AttemptFailed, and nothing else.

        The connection is closed at once when the iteration is given up, by `aclose` or by cancelling the task.
        """

    async def models(self, provider: Provider, key: Key, watchdog: Watchdog) -> tuple[ListedModel, ...]:
        """What the provider lists. Raises AttemptFailed."""

    async def close(self) -> None:
        """Close every connection."""
