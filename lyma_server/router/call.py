"""One model call: attempt after attempt, until somebody answers or nobody is left.

What to do is decided by `policy` and `step`; this loop does it. Before the commit point a failure is silent but for its
attempt; after it the call ends with StreamInterrupted, and whoever asked may ask again.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from lyma_server.protocol.events import Attempt
from lyma_server.router.chat import Remark, Restarted, Text, TextDelta
from lyma_server.router.policy import CLASSES
from lyma_server.router.providers.openai_request import thinks_unseen
from lyma_server.router.report import Fate, all_failed, interrupted
from lyma_server.router.shrink import shrink
from lyma_server.router.spending import costs_more, window_of
from lyma_server.router.step import LONGEST_WAIT_S, Attempted, Facts, next_step
from lyma_server.router.trial import Trial
from lyma_server.router.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from lyma_server.config.model import RouterSettings
    from lyma_server.protocol.events import RouteNext, Usage
    from lyma_server.router.chat import ChatEvent, ChatRequest, Completed
    from lyma_server.router.fleet import Fleet, Station
    from lyma_server.router.policy import Decision, Failure
    from lyma_server.router.providers.base import Adapter
    from lyma_server.router.spending import Spending
    from lyma_server.router.step import Step
    from lyma_server.router.trial import Models

Candidate = tuple["Station", str]
Free = dict[tuple[str, str], tuple[str, ...]]
"""The keys that may be asked, in order, by provider and model."""


@define(eq=False)
class Memory:
    """What calls tell later ones: parameters that a model refuses, where the answer to a session broke off (with the key
    where it was the key's fault), and which sessions know already that a candidate costs more.
    """

    refused: dict[tuple[str, str], frozenset[str]] = field(factory=dict)
    broken: dict[str, tuple[tuple[str, str], str | None]] = field(factory=dict)
    told: set[tuple[str, str, str]] = field(factory=set)


@frozen
class Means:
    """What calls share: whom there is, how to speak to them, and what earlier calls found out."""

    fleet: Fleet
    adapter_of: Callable[[Station], Adapter]
    models: Models
    settings: RouterSettings
    spending: Spending
    memory: Memory = field(factory=Memory)


class CallLoop:
    """A call in progress. `stations` are those that may be asked, in order."""

    def __init__(
        self,
        request: ChatRequest,
        stations: tuple[Station, ...],
        means: Means,
        on_attempt: Callable[[Attempt], None],
    ) -> None:
        self._request = request
        self._stations = stations
        self._means = means
        self._fleet = means.fleet
        self._settings = means.settings
        self._memory = means.memory
        self._on_attempt = on_attempt
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._history = "faithful"
        self._shrunk = False
        self._attempts: list[Attempted] = []
        self._met: dict[tuple[str, str, str], tuple[str, int | None, str]] = {}
        self._tried: dict[tuple[str, str], set[str]] = {}
        self._details: list[str] = []

    async def run(self) -> AsyncGenerator[ChatEvent]:
        """Stream the call. Raises AllFailed and StreamInterrupted."""
        candidate = await self._first()
        while True:
            for text in self._remarks(candidate[0]):
                yield Remark(text)
            trial = self._begin(*candidate)
            async with aclosing(self._stream(trial)) as events:
                async for event in events:
                    yield event
            if trial.failure is None:
                yield self._answered(trial)
                return
            decision = self._judge(trial, trial.failure)
            free = self._look(trial)
            step = self._decide(trial, decision, free)
            self._report(trial, decision.class_, step.kind, decision)
            if step.kind == "fail" and trial.completed is not None:
                for event in _refusal(trial.completed):
                    yield event
                return
            candidate = await self._follow(trial, decision, step, free)
            if trial.thought:
                yield Restarted(f"{trial.station.provider.name} {CLASSES[decision.class_].words}")

    # --- one attempt

    def _begin(self, station: Station, fingerprint: str) -> Trial:
        self._fleet.begin(station, self._request.session)
        without = self._memory.refused.get((station.provider.name, station.model), frozenset())
        return Trial(station, fingerprint, self._request, without, self._history, station.model)

    async def _stream(self, trial: Trial) -> AsyncGenerator[ChatEvent]:
        watchdog = Watchdog(self._patience(), thinks=thinks_unseen(trial.station.provider, trial.station.model))
        over = False
        try:
            async with aclosing(
                trial.run(self._means.adapter_of(trial.station), self._means.models, watchdog)
            ) as events:
                async for event in events:
                    yield event
            over = True
        finally:
            if not over:  # given up from outside
                self._fleet.given_up(trial.station)
                self._report(trial, "cancelled", "fail", None)

    def _patience(self) -> Patience:
        settings = self._settings
        return Patience(
            first_content_s=settings.first_content_s,
            first_content_thinking_s=settings.first_content_thinking_s,
            between_content_s=settings.between_content_s,
            deadline=self._started + settings.deadline_s,
        )

    def _answered(self, trial: Trial) -> Completed:
        self._fleet.heard(trial.station, trial.fingerprint, trial.headers)
        self._fleet.answered(trial.station, self._request.session, trial.fingerprint)
        self._memory.broken.pop(self._request.session, None)
        usage = self._report(trial, "ok", "done", None)
        if trial.completed is None:  # pragma: no cover - an adapter ends with an answer or a failure
            raise all_failed(())
        return evolve(trial.completed, usage=usage)

    # --- what comes next

    def _judge(self, trial: Trial, failure: Failure) -> Decision:
        decision = self._fleet.failed(trial.station, trial.fingerprint, failure)
        if decision.class_ == "model_unavailable":
            self._means.models.forget(trial.station.provider.name)
        if decision.class_ == "ok":  # an answer, but not in the format that was asked for
            unreadable = evolve(failure, transport="protocol_error")
            decision = self._fleet.failed(trial.station, trial.fingerprint, unreadable)
        return decision

    def _look(self, trial: Trial) -> Free:
        """Who may be asked after this attempt. A step is decided and followed by one look: between two, another process
        may cool whoever was left.
        """
        self._tried.setdefault(_spot(trial.station), set()).add(trial.fingerprint)
        return {_spot(station): self._usable(station) for station in self._stations}

    def _decide(self, trial: Trial, decision: Decision, free: Free) -> Step:
        step = next_step(decision, self._facts(trial, decision, free))
        if step.kind in {"retry", "repair", "shrink"} or (step.kind == "wait" and decision.class_ == "warming_up"):
            self._tried[_spot(trial.station)].discard(trial.fingerprint)
        return step

    def _facts(self, trial: Trial, decision: Decision, free: Free) -> Facts:
        here = trial.station
        others = self._others(here, free)
        waits = [wait for station in self._stations if (wait := self._fleet.wait_for(station))]
        return Facts(
            provider=here.provider.name,
            model=here.model,
            attempts=tuple(self._attempts),
            keys_left=len(free[_spot(here)]),
            providers_left=len(others),
            candidates=sum(len(station.keys) for station in self._stations),
            deadline_s=self._left(),
            spent_s=self._loop.time() - self._started,
            wait_s=min(waits, default=None),
            larger_left=any(_is_larger(station, here) for station in others),
            can_shrink="shrink" in decision.request and shrink(self._request, decision.room) is not None,
            can_repair=self._can_repair(trial, decision),
        )

    async def _follow(self, trial: Trial, decision: Decision, step: Step, free: Free) -> Candidate:
        """The candidate of the next attempt. Raises where there is none."""
        here = (trial.station, trial.fingerprint)
        if step.kind == "fail":
            raise self._failed(trial, decision)
        if step.kind == "retry":
            return here
        if step.kind == "repair":
            self._repair(trial, decision)
            return here
        if step.kind == "shrink":
            smaller = shrink(self._request, decision.room) or self._request
            self._shrunk = smaller.messages != self._request.messages
            self._request = smaller
            return here
        if step.kind == "wait":
            waited_for = here if decision.class_ == "warming_up" else self._soonest(cooling=True)
            await asyncio.sleep(step.wait_s)
            return waited_for or here
        if decision.key != "none" or decision.provider != "none":  # else it is no fault of this key's
            self._fleet.moved_on(trial.station, self._request.session, trial.fingerprint)
        if step.kind == "rotate":
            return trial.station, (self._usable(trial.station) or free[_spot(trial.station)])[0]
        return self._next_provider(trial.station, free)

    def _next_provider(self, left: Station, free: Free) -> Candidate:
        """Those that this call has not asked yet come first, in order."""
        others = self._others(left, free)
        fresh = [station for station in others if _spot(station) not in self._tried]
        station = (fresh or others)[0]
        return station, free[_spot(station)][0]

    def _others(self, left: Station, free: Free) -> list[Station]:
        return [station for station in self._stations if station is not left and free[_spot(station)]]

    async def _first(self) -> Candidate:
        """Where to begin: the first that is free, but not where the last answer to this session broke off; else wait for
        the first that will be; else one whose breaker is open, since there is nothing to lose.
        """
        free = [(station, key) for station in self._stations for key in self._usable(station)]
        if free:
            return self._away_from_the_break(free)
        soonest = self._soonest()
        wait = self._fleet.wait_for_key(*soonest) if soonest is not None else LONGEST_WAIT_S
        if soonest is not None and wait <= min(LONGEST_WAIT_S, self._left()):
            await asyncio.sleep(wait)
            return soonest
        for station in self._stations:
            for key in self._fleet.usable(station, self._request.session, (), forced=True):
                return station, key
        raise all_failed(self._fates())

    def _away_from_the_break(self, free: list[Candidate]) -> Candidate:
        """The first that is not where the last answer broke off. That was one key's fault, or more often its provider's;
        then another provider comes first, and another key of the same one only where there is none.
        """
        spot, key = self._memory.broken.get(self._request.session, (None, None))
        elsewhere = [(station, other) for station, other in free if _spot(station) != spot]
        others = [(station, other) for station, other in free if (_spot(station), other) != (spot, key)]
        return ((key is None and elsewhere) or others or free)[0]

    def _soonest(self, *, cooling: bool = False) -> Candidate | None:
        """The candidate that may be asked again first; with `cooling` among those that may not be asked now."""
        candidates = [(station, key) for station in self._stations for key in station.keys]
        waits = [(self._fleet.wait_for_key(*candidate), candidate) for candidate in candidates]
        waits = [(wait, candidate) for wait, candidate in waits if wait > 0 or not cooling]
        return min(waits, key=lambda found: found[0], default=(0.0, None))[1]

    def _usable(self, station: Station) -> tuple[str, ...]:
        return self._fleet.usable(station, self._request.session, self._tried.get(_spot(station), ()))

    def _left(self) -> float:
        return self._settings.deadline_s - (self._loop.time() - self._started)

    # --- repairs

    def _can_repair(self, trial: Trial, decision: Decision) -> bool:
        if decision.class_ == "param_unsupported":
            return decision.parameter is not None and decision.parameter not in trial.without
        return decision.class_ == "history_invalid" and self._history == "faithful"

    def _repair(self, trial: Trial, decision: Decision) -> None:
        """Leave out the parameter, from now on; or send the history otherwise, in this call only."""
        if decision.parameter is not None:
            spot = _spot(trial.station)
            self._memory.refused[spot] = trial.without | {decision.parameter}
        elif "must be passed" in decision.message or "missing" in decision.message:
            self._history = "padded"
        else:
            self._history = "plain"

    # --- telling

    def _remarks(self, station: Station) -> list[str]:
        """What the person should know before `station` is asked, each thing once."""
        remarks = []
        about = (self._request.session, *_spot(station))
        if about not in self._memory.told and (text := costs_more(station, self._stations[0], self._request)):
            self._memory.told.add(about)
            remarks.append(text)
        if self._shrunk:
            self._shrunk = False
            remarks.append(f"The conversation is too long for {station.provider.name}: older parts of it are left out.")
        return remarks

    def _report(self, trial: Trial, class_: str, following: RouteNext, decision: Decision | None) -> Usage:
        """Tell and write down how an attempt ended; what it used."""
        cooldown = decision.cooldown_s if decision is not None else None
        status = trial.failure.status if trial.failure is not None else 200 if class_ == "ok" else None
        attempt = Attempt(
            provider=trial.station.provider.name,
            model=trial.model,
            class_=class_,
            next=following,
            ms=trial.ms,
            key=trial.key.masked,
            status=status,
            retry_after_ms=None if cooldown is None else round(cooldown * 1000),
        )
        self._attempts.append(Attempted(*_spot(trial.station), class_, following))
        if class_ != "ok":
            self._met[*_spot(trial.station), trial.fingerprint] = (class_, status, trial.public)
        if decision is not None and decision.message:
            self._details.append(f"{attempt.provider} {class_}: {decision.message}")
        usage = self._means.spending.usage_of(trial)
        self._means.spending.record(trial, class_, usage)
        self._on_attempt(attempt)
        return usage

    def _failed(self, trial: Trial, decision: Decision) -> Exception:
        detail = "\n".join(self._details)
        if not trial.committed:
            return all_failed(self._fates(), detail)
        self._fleet.moved_on(trial.station, self._request.session, trial.fingerprint)
        at_fault = None if decision.key == "none" else trial.fingerprint
        self._memory.broken[self._request.session] = (_spot(trial.station), at_fault)
        return interrupted(trial.station.provider.name, decision.class_, "".join(trial.said), self._fates(), detail)

    def _fates(self) -> list[Fate]:
        """Of every candidate that was asked, or was not because of what is held against it."""
        fates: list[Fate] = []
        for station in self._stations:
            if not station.keys:
                fates.append(Fate(station.provider.name, station.model, "no_key"))
            fates += [fate for key in station.keys if (fate := self._fate(station, key)) is not None]
        return fates

    def _fate(self, station: Station, fingerprint: str) -> Fate | None:
        held = self._fleet.standing(station, fingerprint).reason or station.breaker.reason
        class_, status, public = self._met.get((*_spot(station), fingerprint), (held, None, ""))
        if not class_:
            return None
        return Fate(
            provider=station.provider.name,
            model=station.model,
            class_=class_ if class_ in CLASSES else "unknown",
            key=station.keys[fingerprint].masked,
            where=station.provider.base_url,
            status=status,
            public=public,
            retry_s=self._fleet.wait_for_key(station, fingerprint) or None,
        )


def _spot(station: Station) -> tuple[str, str]:
    return station.provider.name, station.model


def _is_larger(station: Station, than: Station) -> bool:
    """Whether its window is larger, as far as is known; an unknown one may be."""
    size, other = window_of(station), window_of(than)
    return size is None or other is None or size > other


def _refusal(completed: Completed) -> list[ChatEvent]:
    """A refusal that nobody else took over: its words, if it has any, are shown after all."""
    texts = [TextDelta(block.text) for block in completed.message.blocks if isinstance(block, Text) and block.text]
    return [*texts, completed]
