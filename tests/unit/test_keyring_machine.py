"""The key ring with its standings as a state machine: whatever happens, the promises hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lyma_server.router.database import Database
from lyma_server.router.keyring import KeyRing
from lyma_server.router.policy import CLASSES, Decision
from lyma_server.router.standing import Deployment, RingKey, marks_of, standing_of
from lyma_server.router.state import State

KEY_FAULTS = ("rate_limit", "auth_invalid", "quota_exhausted", "permission", "model_unavailable")
SESSIONS = st.sampled_from(["one", "two", "three"])


class KeysInTurn(RuleBasedStateMachine):
    """A real ring over a real (memory only) state, beside the simplest model of it: who is held until when."""

    @initialize(accounts=st.lists(st.sampled_from([None, "work", "home"]), min_size=1, max_size=5))
    def begin(self, accounts):
        self.now = 0.0
        keys = tuple(RingKey(f"key{n}", account) for n, account in enumerate(accounts))
        self.ours = Deployment("openai", "gpt", keys, "stamp")
        self.ring = KeyRing(keys)
        self.state = State(Database(None), wall=lambda: self.now, monotonic=lambda: self.now)
        self.held = {key.fingerprint: 0.0 for key in keys}
        self.organisation = {}
        self.organisation_held = {"org-a": 0.0, "org-b": 0.0}
        self.starts = {}

    def standing(self, key):
        return standing_of(key, self.ours, self.state.snapshot(), self.now)

    def hit(self, key, class_, seconds):
        row = CLASSES[class_]
        learned = self.organisation.get(key.fingerprint)
        decision = Decision(class_, row.key, row.provider, row.request, seconds)
        for mark in marks_of(decision, key, self.ours, learned):
            self.state.hold(mark)
        whole_account = row.key in {"cooldown_account_model", "disable_account"}
        for other in self.ours.keys:
            same_label = whole_account and key.account is not None and other.account == key.account
            if other == key or same_label:
                self.held[other.fingerprint] = max(self.held[other.fingerprint], self.now + seconds)
        if whole_account and learned is not None:
            self.organisation_held[learned] = max(self.organisation_held[learned], self.now + seconds)

    def fail(self, session, fingerprint):
        """The next ask of the session starts at the key behind the one that failed."""
        self.ring.failed(session, fingerprint)
        names = [key.fingerprint for key in self.ours.keys]
        self.starts[session] = names[(names.index(fingerprint) + 1) % len(names)]

    @rule(seconds=st.floats(0.1, 500.0))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(data=st.data(), class_=st.sampled_from(KEY_FAULTS), seconds=st.floats(1.0, 900.0))
    def another_call_meets_a_fault(self, data, class_, seconds):
        self.hit(data.draw(st.sampled_from(self.ours.keys)), class_, seconds)

    @rule(data=st.data(), organisation=st.sampled_from(["org-a", "org-b"]))
    def an_account_is_learned(self, data, organisation):
        key = data.draw(st.sampled_from(self.ours.keys))
        if key.fingerprint not in self.organisation:
            self.organisation[key.fingerprint] = organisation
            self.state.learn("openai", key.fingerprint, organisation)

    @rule(session=SESSIONS, outcomes=st.lists(st.sampled_from([*KEY_FAULTS, "server_error", "ok"]), min_size=6))
    def ask(self, session, outcomes):
        """One call that rotates until a key answers: no held key, every free key in ring order, then the last resorts."""
        tried, order = set(), []
        for outcome in outcomes:
            free = {f for f, until in self.held.items() if until <= self.now and f not in tried}
            best = {f for f in free if self.organisation_held.get(self.organisation.get(f), 0.0) <= self.now}
            key = self.ring.pick(session, self.standing, tried)
            if key is None:
                assert free == set()
                return
            assert key.fingerprint in (best or free)
            if not order and self.starts.get(session) in best:
                assert key.fingerprint == self.starts[session]
            order.append(key.fingerprint)
            tried.add(key.fingerprint)
            if outcome == "ok":
                self.ring.answered(session, key.fingerprint)
                self.starts[session] = key.fingerprint
                return
            self.fail(session, key.fingerprint)
            if outcome != "server_error":
                self.hit(key, outcome, 60.0)

    @precondition(
        lambda self: all(until <= self.now for until in (*self.held.values(), *self.organisation_held.values()))
    )
    @rule(session=SESSIONS)
    def every_key_is_used_in_turn(self, session):
        """With all keys free, a call whose keys all fail by the provider's fault asks each exactly once, in ring order."""
        order = []
        while (key := self.ring.pick(session, self.standing, set(order))) is not None:
            order.append(key.fingerprint)
            self.fail(session, key.fingerprint)
        names = [key.fingerprint for key in self.ours.keys]
        start = names.index(order[0])
        assert order == names[start:] + names[:start]

    @invariant()
    def standings_agree_with_the_model(self):
        for key in self.ours.keys:
            assert (self.standing(key).freedom == "out") == (self.held[key.fingerprint] > self.now)


KeysInTurn.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestKeysInTurn = KeysInTurn.TestCase


class LoadIsSpread(RuleBasedStateMachine):
    """With every-call rotation no free key is asked twice before all free keys were asked once."""

    @initialize(count=st.integers(1, 5))
    def begin(self, count):
        self.keys = tuple(RingKey(f"key{n}") for n in range(count))
        self.ring = KeyRing(self.keys, "every-call")

    @rule(session=SESSIONS)
    def a_round(self, session):
        free = standing_of(self.keys[0], Deployment("p", "m", self.keys), State(Database(None)).snapshot(), 0.0)
        asked = [self.ring.pick(session, lambda _key: free) for _ in self.keys]
        assert sorted(key.fingerprint for key in asked) == [key.fingerprint for key in self.keys]

    @rule(session=SESSIONS, data=st.data())
    def verdicts_do_not_disturb_it(self, session, data):
        key = data.draw(st.sampled_from(self.keys))
        data.draw(st.sampled_from([self.ring.answered, self.ring.failed]))(session, key.fingerprint)


LoadIsSpread.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestLoadIsSpread = LoadIsSpread.TestCase
