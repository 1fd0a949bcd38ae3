"""Asks, cancels, commands, runs, crashes, restarts and a full disk, in an order that a seed decides.

Two real servers share one home, as two editors do: a steady one, whose memory and descriptors are watched, and one that
is killed, restarted and made to write on a full disk.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config.model import CeilingSettings
from lyma_server.config.paths import Home
from lyma_server.factory.factory import Factory
from lyma_server.isolation.canary import remove_stale
from tests.agents import plain_bundle
from tests.soak.house import House
from tests.soak.measures import Holdings, holdings
from tests.soak.provider import FAULTS, PLAN, WORDS, Plans
from tests.stub_provider import StubProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MOST_AT_ONCE, MOST_SESSIONS = 4, 4
PAUSE_S = 0.05
ENOUGH_ANSWERS = 20
PEACE_S = (1.0, 3.0)
"""Between one calamity and the next."""

WARM_UP = 0.35
"""The part of the time after which memory is to stay as it is."""
GROWTH_MIB = 16.0
MOST_CONNECTIONS = 24
"""Some to each provider are kept for the next call."""

CALM_S = 30.0
AGES_S = 3600.0
MAY_BE_EMPTY = {"state.db.lock", "state.db-wal", "transcript.jsonl"}
"""The last of a run that was killed before it said anything."""


@attrs.define(eq=False)
class Soak:
    """`folder` is empty; `chance` decides."""

    folder: Path
    chance: random.Random
    plans: Plans
    stubs: Sequence[StubProvider]
    root: Path = attrs.field(init=False)
    steady: House = attrs.field(init=False)
    brittle: House = attrs.field(init=False)
    numbers: int = 0
    houses: list[House] = attrs.field(factory=list)
    told: list[str] = attrs.field(factory=list)
    calamities: list[Callable[[], None]] = attrs.field(factory=list)
    next_calamity: float = 0.0
    befallen: int = 0

    @classmethod
    def lay_out(cls, folder: Path, seed: int) -> Soak:
        """A workspace, a home and an agent that a person has approved."""
        for name in ("work/notes", "tmp", "home"):
            (folder / name).mkdir(parents=True, mode=0o700)
        agent = plain_bundle("soaker", files__write=[], tools__allow=["fs.list"])
        factory = Factory(Home(folder / "home"), CeilingSettings())
        factory.store.save(agent)
        asked = factory.gate.ask(agent, folder / "work", b"shown", "terminal")
        factory.gate.answer(asked, agent.hash, asked.nonce, approved=True)
        plans = Plans(agent.hash)
        return cls(folder, random.Random(seed), plans, [StubProvider(plans.answer) for _ in range(2)])

    def run(self, seconds: float) -> None:
        """All of it. Raises AssertionError for what does not hold."""
        self.root = self.folder / "work"
        try:
            self.steady, self.brittle = self._house(), self._house()
            self._endure(seconds)
        finally:
            for house in self.houses:
                house.client.__exit__()

    def _endure(self, seconds: float) -> None:
        began = time.monotonic()
        warm: Holdings | None = None
        while (age := time.monotonic() - began) < seconds or not self._has_seen_enough():
            self._step()
            if warm is None and age > seconds * WARM_UP:
                warm = self._calm(self.steady)
        assert warm is not None
        self._conclude(warm)

    def _has_seen_enough(self) -> bool:
        """A slow machine takes longer for it."""
        return self.befallen >= len(self._calamities()) and self.outcomes["lyma/ask end_turn"] >= ENOUGH_ANSWERS

    def _step(self) -> None:
        """One act on one of the servers, and a look at both."""
        house = self.chance.choice((self.steady, self.brittle))
        if time.monotonic() > self.next_calamity:
            self._befall()
        else:
            self.chance.choices((self._ask, self._run_agent, self._look, self._copy, self._retire), (60, 6, 8, 2, 6))[
                0
            ](house)
        for each in (self.steady, self.brittle):
            each.tend()
        house.pause(PAUSE_S)
        for stub in self.stubs:
            del stub.requests[:-8], stub.listings[:-8]

    def _befall(self) -> None:
        """The next calamity; each comes once before any comes again."""
        if not self.calamities:
            self.calamities = self._calamities()
            self.chance.shuffle(self.calamities)
        self.calamities.pop()()
        self.befallen += 1
        self.next_calamity = time.monotonic() + self.chance.uniform(*PEACE_S)

    def _calamities(self) -> list[Callable[[], None]]:
        return [self._crash, self._restart, self._full_disk]

    # What is asked

    def _ask(self, house: House) -> None:
        if len(house.waiting) >= MOST_AT_ONCE:
            return
        busy = {asked.session for asked in house.waiting.values()}
        free = [session for session in house.sessions if session not in busy]
        params: dict[str, Any] = {"prompt": self._plan()}
        if free and (len(house.sessions) >= MOST_SESSIONS or self.chance.random() < 0.7):
            params["session"] = self.chance.choice(free)
        house.ask(
            "lyma/ask", params, cancel_at=self._cancellation(), then=lambda reply: house.know(reply.get("result", {}))
        )

    def _run_agent(self, house: House) -> None:
        if len(house.waiting) < MOST_AT_ONCE:
            params = {"action": "run", "hash": self.plans.agent, "input": self._plan()}
            house.ask("lyma/subagent", params, cancel_at=self._cancellation())

    def _look(self, house: House) -> None:
        """A small request, sometimes for what there is not."""
        small = (
            ("lyma/status", {}),
            ("lyma/models", {}),
            ("lyma/sessions", {"action": "list"}),
            ("lyma/sessions", {"action": "load", "session": "none"}),
            ("lyma/subagent", {"action": "list"}),
            ("lyma/nothing", {}),
            *(("lyma/sessions", {"action": "diff", "session": each}) for each in house.sessions[:1]),
        )
        house.ask(*self.chance.choice(small))

    def _copy(self, house: House) -> None:
        """A copy can be gone on with like any session."""
        for session in house.sessions[:1]:
            params = {"action": "fork", "session": session}
            house.ask(
                "lyma/sessions", params, then=lambda reply: house.know(*reply.get("result", {}).get("sessions", ()))
            )

    def _plan(self) -> str:
        """Mostly sound, with a fault here and there: once, twice, or so often that no provider is left."""
        self.numbers += 1
        words = [self.chance.choice(WORDS) for _ in range(self.chance.randint(1, 3))]
        if self.chance.random() < 0.1:
            words.append("agent")
        if self.chance.random() < 0.4:
            faults = [self.chance.choice(list(FAULTS))] * self.chance.choice((1, 1, 1, 2, 16))
            at = self.chance.randint(0, len(words))
            words[at:at] = faults
        return f"plan:{self.numbers}:{','.join(words)}"

    def _cancellation(self) -> float | None:
        return time.monotonic() + self.chance.uniform(0, 0.6) if self.chance.random() < 0.2 else None

    # What befalls

    def _retire(self, house: House) -> None:
        busy = {asked.session for asked in house.waiting.values()}
        free = [session for session in house.sessions if session not in busy]
        if len(free) > 1:
            house.retire(free[0])

    def _crash(self) -> None:
        """What it had shown outlives it, and the next one goes on with it."""
        dead = self.brittle
        dead.kill()
        self.brittle = self._house()
        self.brittle.inherit(dead)
        for session in list(self.brittle.sessions):
            self.brittle.check_session(session)

    def _restart(self) -> None:
        closed = self.brittle
        closed.shut_down()
        self.brittle = self._house()
        self.brittle.inherit(closed)
        for session in list(self.brittle.sessions):
            self.brittle.check_session(session)

    def _full_disk(self) -> None:
        self.brittle.settle()
        self.brittle.fill_disk()
        for _ in range(3):
            self._ask(self.brittle)
            self._look(self.brittle)
            self._copy(self.brittle)
        self.brittle.settle()
        self.brittle.empty_disk()

    def _house(self) -> House:
        self.houses.append(House(self._variables(), self.root, self.houses, self._at_providers))
        return self.houses[-1]

    def _at_providers(self) -> str:
        """The calls that are not over, and what was answered last."""
        calls = [
            call for stub in self.stubs for call in stub.requests if not (call.done.is_set() or call.closed.is_set())
        ]
        plans = [PLAN.findall(call.raw)[-1:] for call in calls]
        return "\n".join((f"at {time.monotonic():.1f} under way: {plans}", *self.plans.latest))

    def _variables(self) -> dict[str, str]:
        variables = {
            "HOME": str(self.folder),
            "LYMA_HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "LYMA_ORDER": "one,two",
            "LYMA_ROUTER__FIRST_CONTENT_S": "1",
            "LYMA_ROUTER__BETWEEN_CONTENT_S": "1",
            "LYMA_ROUTER__DEADLINE_S": "15",
        }
        for name, stub in zip(("ONE", "TWO"), self.stubs, strict=True):
            variables[f"LYMA_PROVIDERS__{name}__BASE_URL"] = stub.openai_url
            variables[f"LYMA_PROVIDERS__{name}__MODEL"] = "stub-model"
            variables[f"LYMA_PROVIDERS__{name}__KEYS"] = ",".join(f"sk-soak-{name}-{n}-abcdefghij" for n in range(4))
        return variables

    # What must hold

    def _calm(self, house: House) -> Holdings:
        """What it holds when nothing is under way and no session is left."""
        house.settle()
        house.know_all_shown()
        for session in list(house.sessions):
            house.retire(session)
        deadline = time.monotonic() + CALM_S
        while (found := holdings(house.pid)).children and time.monotonic() < deadline:
            house.pause(0.1)
        return found

    def _conclude(self, warm: Holdings) -> None:
        cold = self._calm(self.steady)
        grown = cold.memory_mib - warm.memory_mib
        self.told.append(f"memory grew by {grown:.1f} MiB; {dict(cold.descriptors)}")
        assert grown < GROWTH_MIB, f"memory went from {warm.memory_mib:.0f} to {cold.memory_mib:.0f} MiB"
        assert cold.children == (), f"left running: {cold.children}"
        self._calm(self.brittle)
        more = cold.descriptors - warm.descriptors
        del more["socket"]
        assert more.total() <= 1, f"more descriptors than before: {more}"
        assert cold.descriptors["socket"] <= MOST_CONNECTIONS
        for house in (self.steady, self.brittle):
            house.shut_down()
        assert [path.name for path in (self.folder / "tmp").iterdir()] == []
        strays = {path.name for path in self.root.rglob("*") if path.is_file()} - {f"{n}.txt" for n in range(5)}
        assert strays == set()
        remove_stale(self.folder / "home", time.time() + AGES_S)  # as the next proof does
        empty = {path.name for path in (self.folder / "home").rglob("*") if path.is_file() and not path.stat().st_size}
        assert empty - MAY_BE_EMPTY == set()

    @property
    def outcomes(self) -> Counter[str]:
        """How often each request ended how, in all lives of the servers."""
        return sum((Counter(house.outcomes) for house in self.houses), Counter())
