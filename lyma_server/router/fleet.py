"""Every provider with its keys, and what experience says of each: rings, breakers and the shared state in one place.

The decisions are made elsewhere, purely; this is where they are looked up and written down.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from attrs import define

from lyma_server.router.breaker import Breaker
from lyma_server.router.keyring import KeyRing
from lyma_server.router.policy import decide
from lyma_server.router.providers.base import AUTO
from lyma_server.router.standing import (
    Deployment,
    RingKey,
    Standing,
    account_in,
    config_stamp,
    marks_against_all,
    marks_of,
    standing_of,
    strike_mark,
    strikes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from lyma_server.router.breaker import BreakerState
    from lyma_server.router.keyring import Rotation
    from lyma_server.router.policy import Decision, Failure
    from lyma_server.router.providers.base import Key, Provider
    from lyma_server.router.state import State

OPENED_S = {"breaker_open_10s": 10.0, "breaker_open_30s": 30.0}


@define(eq=False)
class Station:
    """A model at a provider: whom to ask, with which keys, and how it has been doing."""

    provider: Provider
    model: str
    deployment: Deployment
    ring: KeyRing
    breaker: Breaker
    keys: dict[str, Key]


class Fleet:
    """Rings, breakers and state of all stations. Times are monotonic seconds but for the wall clock of the headers."""

    def __init__(
        self,
        state: State,
        rotation: Rotation = "on-failure",
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._state = state
        self._rotation: Rotation = rotation
        self._monotonic = monotonic
        self._wall = wall
        self._chance = chance
        self._stations: dict[tuple[str, str], Station] = {}

    def station(self, provider: Provider, model: str) -> Station:
        """The one station of this provider and model."""
        known = self._stations.get((provider.name, model))
        if known is None:
            known = self._stations[provider.name, model] = self._new_station(provider, model)
        return known

    def _new_station(self, provider: Provider, model: str) -> Station:
        keys = {key.fingerprint: key for key in provider.keys}
        ring_keys = tuple(RingKey(fingerprint, key.account) for fingerprint, key in keys.items())
        deployment = Deployment(provider.name, model, ring_keys, config_stamp(provider.base_url, ring_keys))
        return Station(provider, model, deployment, KeyRing(ring_keys, self._rotation), Breaker(), keys)

    def standing(self, station: Station, fingerprint: str) -> Standing:
        """How a key stands; the breaker is not asked."""
        key = self._ring_key(station, fingerprint)
        return standing_of(key, station.deployment, self._state.snapshot(), self._monotonic())

    def usable(self, station: Station, session: str, tried: Container[str], *, forced: bool = False) -> tuple[str, ...]:
        """Fingerprints of the keys to try, in order; none while the breaker is open, unless `forced`."""
        now = self._monotonic()
        snapshot = self._state.snapshot()
        station.breaker.adopt(snapshot.breakers.get((station.provider.name, station.model)), now)
        if not forced and not station.breaker.admits(now):
            return ()
        keys = station.ring.usable(session, lambda key: standing_of(key, station.deployment, snapshot, now), tried)
        return tuple(key.fingerprint for key in keys)

    def begin(self, station: Station, session: str) -> None:
        """An attempt begins: a half-open breaker notes its one probe, and a ring that turns at every call turns."""
        station.breaker.admit(self._monotonic())
        if self._rotation == "every-call":
            station.ring.pick(session, lambda key: self.standing(station, key.fingerprint))

    def wait_for(self, station: Station) -> float | None:
        """Seconds until some key of the station may be asked again; 0 where one may be now, null where it has no key."""
        return min((self.wait_for_key(station, fingerprint) for fingerprint in station.keys), default=None)

    def held_for(self, station: Station, fingerprint: str) -> float:
        """Seconds until nothing is held against this key any more; the breaker is not asked."""
        standing = self.standing(station, fingerprint)
        return max(standing.until - self._monotonic(), 0.0) if standing.freedom == "out" else 0.0

    def wait_for_key(self, station: Station, fingerprint: str) -> float:
        """Seconds until this key may be asked again; 0 where it may be now."""
        now = self._monotonic()
        breaker = station.breaker.until - now if station.breaker.state(now) == "open" else 0.0
        return max(self.held_for(station, fingerprint), breaker)

    def breaker_state(self, station: Station) -> BreakerState:
        """Whether the provider is being asked at all, as far as any process knows."""
        now = self._monotonic()
        station.breaker.adopt(self._state.snapshot().breakers.get((station.provider.name, station.model)), now)
        return station.breaker.state(now)

    def account_of(self, station: Station, fingerprint: str) -> str | None:
        """Whose key it is: the label that the person gave it, or what the provider once said."""
        label = station.keys[fingerprint].account
        return label or self._state.snapshot().learned.get((station.provider.name, fingerprint))

    def heard(self, station: Station, fingerprint: str, headers: Mapping[str, str]) -> None:
        """Learn whose key it is from the headers of a reply."""
        account = account_in(headers)
        if account is not None:
            self._state.learn(station.provider.name, fingerprint, account)

    def answered(self, station: Station, session: str, fingerprint: str) -> None:
        """The station answered with this key."""
        if station.breaker.succeeded(self._monotonic()):
            self._state.close_breaker(station.provider.name, station.model)
        station.ring.answered(session, fingerprint)
        self._state.answered(strike_mark(self._ring_key(station, fingerprint), station.deployment))

    def failed(self, station: Station, fingerprint: str, failure: Failure) -> Decision:
        """Judge a failure and write down what it holds against the key, its account and the provider."""
        self.heard(station, fingerprint, failure.headers)
        key, snapshot = self._ring_key(station, fingerprint), self._state.snapshot()
        strikes = strikes_of(key, station.deployment, snapshot)
        decision = decide(failure, self._wall(), strikes=strikes, chance=self._chance())
        learned = snapshot.learned.get((station.provider.name, fingerprint))
        if decision.key != "block_model" or station.model != AUTO:  # "auto" may mean another model at the next call
            for mark in marks_of(decision, key, station.deployment, learned):
                self._state.hold(mark)
        self._tell_breaker(station, decision)
        return decision

    def moved_on(self, station: Station, session: str, fingerprint: str) -> None:
        """The next ask of this session starts behind this key."""
        station.ring.failed(session, fingerprint)

    def works(self, station: Station, fingerprint: str) -> bool:
        """The key was seen to work, otherwise than by an answer: it rests no longer. Whether it did."""
        snapshot = self._state.snapshot()
        places = marks_against_all(self._ring_key(station, fingerprint), station.provider.name, snapshot)
        rested = [self._state.release(place) for place in places]
        return any(rested)

    def given_up(self, station: Station) -> None:
        """An attempt ended without a verdict on the provider."""
        station.breaker.released()

    def _tell_breaker(self, station: Station, decision: Decision) -> None:
        now, breaker = self._monotonic(), station.breaker
        if decision.provider == "breaker_fail":
            opened = breaker.failed(now, decision.class_)
            seconds = breaker.length_s
        elif decision.provider in OPENED_S:
            seconds = OPENED_S[decision.provider]
            opened = breaker.opened_for(seconds, now, decision.class_)
        else:
            breaker.released()
            return
        if opened:
            self._state.open_breaker(station.provider.name, station.model, seconds, decision.class_)

    def _ring_key(self, station: Station, fingerprint: str) -> RingKey:
        return RingKey(fingerprint, station.keys[fingerprint].account)
