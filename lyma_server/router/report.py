"""What is told when a call fails: every candidate, what it did in plain words, and when it is worth asking again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.errors import AllFailed, StreamInterrupted
from lyma_server.router.policy import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lyma_server.protocol.base import Json

ADVICE = {
    "auth_invalid": "check the key, the base URL and its region",
    "quota_exhausted": "add credit, then `lyma keys wake`, or another key",
    "wrong_url": "check the base URL",
    "connect_error": "check that it runs, its base URL, and HTTPS_PROXY where a proxy is needed",
    "dns_error": "check the base URL and the network",
    "timeout": "check the network, and HTTPS_PROXY where a proxy is needed",
    "region_denied": "use a provider that serves your region, or its other base URL",
    "permission": "allow the model for this key, or use another key",
    "protocol_error": "check the base URL: something else may answer there",
    "server_error": "try again later",
    "overloaded": "try again later",
    "tls_error": "set SSL_CERT_FILE to the certificate authority in use here",
    "model_unavailable": "see `lyma models`",
    "context_overflow": "start a new session or attach less",
    "payload_too_large": "start a new session or attach less",
    "no_key": "add one with `lyma keys add`",
}


NAMES_ITS_PLACE = {"connect_error", "dns_error", "tls_error", "wrong_url", "auth_invalid", "region_denied"}


def what_it_did(class_: str, where: str | None, model: str) -> str:
    """What a candidate did, to follow its name: with its address or its model where the fault may lie there."""
    words = CLASSES[class_].words
    if class_ in NAMES_ITS_PLACE and where:
        return f"{words} at {where}"
    return f"{words} {model}" if class_ == "model_unavailable" else words


@frozen
class Fate:
    """What became of one candidate. `retry_s` is how long until it may be asked again, null where it may be now or where
    waiting changes nothing. `key` is masked; `where` is its base URL; `public` says more than the class does.
    """

    provider: str
    model: str
    class_: str
    key: str | None = None
    where: str | None = None
    status: int | None = None
    retry_s: float | None = None
    public: str = ""

    @property
    def words(self) -> str:
        """What it did, to follow its name."""
        if self.public:
            return f"could not start ({self.public.removesuffix('.')})"
        return "has no key" if self.class_ == "no_key" else CLASSES[self.class_].words

    @property
    def words_in_full(self) -> str:
        """The same with its address or its model."""
        plain = self.public or self.class_ == "no_key"
        return self.words if plain else what_it_did(self.class_, self.where, self.model)

    def as_data(self) -> dict[str, Json]:
        """For the wire."""
        return {
            "provider": self.provider,
            "model": self.model,
            "key": self.key,
            "class": self.class_,
            "words": f"{self.provider} {self.words}",
            "status": self.status,
            "retry_after_ms": None if self.retry_s is None else round(self.retry_s * 1000),
        }


def all_failed(fates: Sequence[Fate], detail: str = "") -> AllFailed:
    """One error for all of them. `detail` is for the log and may hold what servers said."""
    waits = [fate.retry_s for fate in fates if fate.retry_s is not None]
    data: dict[str, Json] = {
        "attempts": [fate.as_data() for fate in fates],
        "retry_after_ms": round(min(waits) * 1000) if waits else None,
    }
    if not fates:
        return AllFailed("No provider is configured: add a key with `lyma setup`.", detail=detail, **data)
    sentences = list(dict.fromkeys(_sentence(fate, fates) for fate in fates))
    if len(sentences) == 1:
        return AllFailed(f"{sentences[0]}.", detail=detail, **data)
    return AllFailed(f"No provider could answer: {'; '.join(sentences)}.", detail=detail, **data)


def _sentence(fate: Fate, fates: Iterable[Fate]) -> str:
    """Keys that met the same fate share a sentence, with the earliest time of them."""
    alike = [other for other in fates if (other.provider, other.class_) == (fate.provider, fate.class_)]
    name = fate.provider
    if len(alike) > 1:
        name += f" ({len(alike)} keys)"
    elif fate.key is not None:
        name += f" (key {fate.key})"
    sentence = f"{name} {fate.words_in_full}"
    if fate.public:
        return sentence
    waits = [other.retry_s for other in alike if other.retry_s is not None]
    if waits:
        sentence += f", next try in {duration(min(waits))}"
    advice = ADVICE.get(fate.class_)
    return f"{sentence} ({advice})" if advice else sentence


def interrupted(provider: str, class_: str, partial: str, fates: Sequence[Fate], detail: str = "") -> StreamInterrupted:
    """The error of an answer that broke off."""
    return StreamInterrupted(
        f"The answer was interrupted: {provider} {CLASSES[class_].words}; ask again to let another candidate answer.",
        partial=partial,
        detail=detail,
        attempts=[fate.as_data() for fate in fates],
        retry_after_ms=None,
    )


def duration(seconds: float) -> str:
    """A length of time for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
