"""Who may be asked now: what is held against keys, accounts and providers, and what a decision adds to it. All pure.

Times in a `Snapshot` are monotonic seconds of this process; a `Mark` holds a length, so that clocks stay with the state.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import Factory, frozen

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from lyma_server.router.policy import Decision

EVERY_MODEL = "*"
NO_KEY = "-"
"""The fingerprint of a provider that needs no key."""

_ACCOUNT_HEADERS = ("anthropic-organization-id", "openai-organization")
_EVERY_KEY = "provider"


@frozen
class RingKey:
    """A key as the ring knows it: sha256(key)[:12], and its account where the person named one."""

    fingerprint: str
    account: str | None = None


@frozen
class Deployment:
    """One model at one provider with its keys. `stamp` changes with the provider's configuration (see `config_stamp`)."""

    provider: str
    model: str
    keys: tuple[RingKey, ...] = (RingKey(NO_KEY),)
    stamp: str = ""


@frozen
class Mark:
    """`subject` (a key, an account, a learned account, or all keys of the provider) is not to be asked for `model` for
    `seconds` from now. A mark with a `stamp` ends when the configuration changes.
    """

    provider: str
    subject: str
    model: str
    seconds: float
    reason: str
    stamp: str = ""


@frozen
class Held:
    """A mark in force until `until` (monotonic). `strikes` counts cooldowns without a success between."""

    until: float
    reason: str
    stamp: str = ""
    strikes: int = 0


@frozen
class OpenBreaker:
    """A breaker that some process opened: until when (monotonic), and for how many seconds that was."""

    until: float
    seconds: float
    reason: str = ""


@frozen
class Snapshot:
    """All that is known at a moment. Keys: (provider, subject, model), (provider, fingerprint), (provider, model)."""

    marks: Mapping[tuple[str, str, str], Held] = Factory(dict)
    learned: Mapping[tuple[str, str], str] = Factory(dict)
    breakers: Mapping[tuple[str, str], OpenBreaker] = Factory(dict)


Freedom: TypeAlias = Literal["free", "shared", "out"]


@frozen
class Standing:
    """`free`; `shared`: its learned account is cooling, so it comes last; `out`: not to be asked before `until`."""

    freedom: Freedom
    until: float = 0.0
    reason: str = ""


FREE = Standing("free")


def config_stamp(base_url: str | None, keys: Iterable[RingKey]) -> str:
    """Changes when the address, a key or an account label of a provider changes."""
    parts = [base_url or "", *(f"{key.fingerprint}={key.account or ''}" for key in keys)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def account_in(headers: Mapping[str, str]) -> str | None:
    """Stands for the account that a provider names in its reply; `headers` have lower-case names.

    It is a hash: it goes into the state on disk, and a server may put anything into a header, a key too.
    """
    named = next((headers[name] for name in _ACCOUNT_HEADERS if headers.get(name)), None)
    return None if named is None else hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def standing_of(
    key: RingKey, deployment: Deployment, snapshot: Snapshot, now: float, ignoring: Container[str] = ()
) -> Standing:
    """How `key` stands at `now` (monotonic). Marks whose reason is in `ignoring` do not count."""
    own = [_key_subject(key), _EVERY_KEY]
    if key.account is not None:
        own.append(_account_subject(key.account))
    held = _longest(own, deployment, snapshot, now, ignoring)
    if held is not None:
        return Standing("out", held.until, held.reason)
    learned = snapshot.learned.get((deployment.provider, key.fingerprint))
    if learned is not None:
        held = _longest([_learned_subject(learned)], deployment, snapshot, now, ignoring)
        if held is not None:
            return Standing("shared", held.until, held.reason)
    return FREE


def _longest(
    subjects: Iterable[str], deployment: Deployment, snapshot: Snapshot, now: float, ignoring: Container[str]
) -> Held | None:
    found = [
        held
        for subject in subjects
        for model in (deployment.model, EVERY_MODEL)
        if (held := snapshot.marks.get((deployment.provider, subject, model))) is not None
        and held.until > now
        and held.reason not in ignoring
        and held.stamp in {"", deployment.stamp}
    ]
    return max(found, key=lambda held: held.until, default=None)


def strikes_of(key: RingKey, deployment: Deployment, snapshot: Snapshot) -> int:
    """How many cooldowns of this key's account and model came without a success between."""
    held = snapshot.marks.get((deployment.provider, _limit_subject(key), deployment.model))
    return held.strikes if held is not None else 0


def strike_mark(key: RingKey, deployment: Deployment) -> tuple[str, str, str]:
    """The (provider, subject, model) whose strikes a success of `key` ends."""
    return (deployment.provider, _limit_subject(key), deployment.model)


def marks_against_all(key: RingKey, provider: str, snapshot: Snapshot) -> tuple[tuple[str, str, str], ...]:
    """What is held against `key` for every model, of its own, its account's or its provider's: all that is no limit, and
    that a key which works disproves.
    """
    subjects = {_key_subject(key), _EVERY_KEY}
    if key.account is not None:
        subjects.add(_account_subject(key.account))
    if learned := snapshot.learned.get((provider, key.fingerprint)):
        subjects.add(_learned_subject(learned))
    places = ((provider, subject, EVERY_MODEL) for subject in sorted(subjects))
    return tuple(place for place in places if place in snapshot.marks)


def marks_of(decision: Decision, key: RingKey, deployment: Deployment, learned: str | None) -> tuple[Mark, ...]:
    """What `decision` holds against `key`, its account or its provider. `learned` is the account that headers named."""
    targets: list[tuple[str, str]] = []
    stamp = deployment.stamp
    match decision.key:
        case "cooldown_account_model":
            targets, stamp = [(_limit_subject(key), deployment.model)], ""
        case "disable":
            targets = [(_key_subject(key), EVERY_MODEL)]
        case "disable_account":
            targets = [(_limit_subject(key), EVERY_MODEL)]
        case "block_model":
            missing = decision.class_ == "capability_missing"
            targets = [(_EVERY_KEY if missing else _key_subject(key), deployment.model)]
        case "none":
            pass
    if learned is not None and decision.key in {"cooldown_account_model", "disable_account"}:
        targets.append((_learned_subject(learned), targets[0][1]))
    if decision.provider == "disable_provider":
        targets.append((_EVERY_KEY, EVERY_MODEL))
    return tuple(
        Mark(deployment.provider, subject, model, decision.cooldown_s or 0.0, decision.class_, stamp)
        for subject, model in targets
    )


def _key_subject(key: RingKey) -> str:
    return f"key:{key.fingerprint}"


def _account_subject(account: str) -> str:
    return f"account:{account}"


def _learned_subject(account: str) -> str:
    return f"learned:{account}"


def _limit_subject(key: RingKey) -> str:
    """Limits belong to accounts; a key without a label is its own account."""
    return _key_subject(key) if key.account is None else _account_subject(key.account)
