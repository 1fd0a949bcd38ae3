"""Budgets: exact to the last unit, reserved in the run and in all above it, and never overspent by a lie or by a race."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lyma_server.factory.budget import NAMES, Amount, Budget, Exhausted, Limits, limits_of
from lyma_server.factory.model_call import Exchange, PriceUnknown, most_of, used_by
from lyma_server.protocol.events import Usage
from lyma_server.router.prices import FREE, ModelFacts, Tier
from tests.agents import bundle

PLENTY = Amount(**dict.fromkeys(NAMES, 1_000_000))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def budget(wall_s=100.0, clock=None, **limits):
    most = Amount(**{**dict.fromkeys(NAMES, 1_000_000), **limits})
    return Budget("root", Limits(most, wall_s), clock or Clock())


@pytest.mark.parametrize("name", NAMES)
def test_each_counter_is_exact(name):
    root = budget(**{name: 7})
    child = root.child("leaf", Limits(PLENTY, 100))
    for _ in range(6):
        child.spend(Amount(**{name: 1})) if name != "running" else child.reserve(Amount(running=1))
    reservation = child.reserve(Amount(**{name: 1}))
    with pytest.raises(Exhausted) as caught:
        child.reserve(Amount(**{name: 1}))
    assert (caught.value.what, caught.value.path) == (name, ("root",))
    reservation.settle(Amount())
    child.reserve(Amount(**{name: 1}))


@pytest.mark.parametrize("name", NAMES)
def test_the_stricter_of_parent_and_child_binds(name):
    for whose, own, above in (("leaf", 3, 5), ("root", 5, 3)):
        root = budget(**{name: above})
        leaf = root.child("leaf", Limits(Amount(**{**dict.fromkeys(NAMES, 100), name: own}), 100))
        assert getattr(leaf.left(), name) == 3
        leaf.reserve(Amount(**{name: 3}))
        with pytest.raises(Exhausted) as caught:
            leaf.reserve(Amount(**{name: 1}))
        assert caught.value.path[-1] == whose
        assert getattr(leaf.left(), name) == 0


def test_a_call_that_does_not_fit_reserves_nothing():
    root = budget(tokens=10)
    child = root.child("leaf", Limits(PLENTY, 100))
    with pytest.raises(Exhausted):
        child.reserve(Amount(turns=1, tokens=11))
    assert child.left().turns == 1_000_000
    assert root.left() == Amount(**{**dict.fromkeys(NAMES, 1_000_000), "tokens": 10})


def test_time_is_exact_and_the_earliest_end_binds():
    clock = Clock()
    root = budget(wall_s=10, clock=clock)
    clock.now = 4.0
    child = root.child("leaf", Limits(PLENTY, 100))
    short = root.child("short", Limits(PLENTY, 2))
    assert (root.seconds_left(), child.seconds_left(), short.seconds_left()) == (6, 6, 2)
    clock.now = 6.0
    short.spend(Amount(turns=1))
    clock.now = 6.001
    with pytest.raises(Exhausted) as caught:
        short.reserve(Amount(turns=1))
    assert (caught.value.what, caught.value.path) == ("wall_s", ("root", "short"))
    clock.now = 10.0
    child.spend(Amount(turns=1))
    clock.now = 10.001
    for each in (child, root):
        with pytest.raises(Exhausted, match="wall_s of root"):
            each.spend(Amount())
    assert child.seconds_left() == 0


@pytest.mark.parametrize(
    "used",
    [
        None,
        Amount(turns=1, tokens=101),
        Amount(turns=2, tokens=1),
        Amount(tokens=-1),
        Amount(turns=1, tokens=True),
        Amount(turns=1, tokens=1.5),
        Amount(turns=1, tokens=1, cost_micros=1),
        Amount(turns=1, tokens=1, bytes_read=1),
    ],
    ids=str,
)
def test_usage_that_is_missing_or_a_lie_charges_the_reservation(used):
    root = budget()
    charged = root.reserve(Amount(turns=1, tokens=100)).settle(used)
    assert charged == root.used == Amount(turns=1, tokens=100)


def test_usage_that_can_be_true_is_charged_and_the_rest_given_back():
    root = budget(tokens=100)
    child = root.child("leaf", Limits(PLENTY, 100))
    assert child.reserve(Amount(turns=1, tokens=100)).settle(Amount(turns=1, tokens=30)) == Amount(turns=1, tokens=30)
    assert root.used == child.used == Amount(turns=1, tokens=30)
    assert child.left().tokens == 70


def test_a_reservation_is_settled_once_and_stays_if_it_never_is():
    root = budget(tokens=100)
    reservation = root.reserve(Amount(tokens=60))
    reservation.settle(None)
    with pytest.raises(RuntimeError):
        reservation.settle(None)
    root.reserve(Amount(tokens=40))
    assert (root.used.tokens, root.left().tokens) == (60, 0)


@pytest.mark.parametrize("amount", [Amount(tokens=-1), Amount(turns=True), Amount(tokens=0.5)])
def test_nothing_negative_or_odd_is_reserved(amount):
    root = budget()
    with pytest.raises(ValueError, match="whole and never negative"):
        root.reserve(amount)
    assert root.left() == PLENTY


def test_runs_are_counted_for_the_root_and_their_slots_come_back():
    root = budget(runs=4, running=3)
    with ExitStack() as inside:
        inside.enter_context(root.running())
        for name in ("a", "b"):
            inside.enter_context(root.child(name, Limits(PLENTY, 100)).running())
        with pytest.raises(Exhausted, match="running"), root.child("c", Limits(PLENTY, 100)).running():
            pass
    assert root.left().running == 3
    with pytest.raises(KeyError), root.child("d", Limits(PLENTY, 100)).running():
        raise KeyError
    with pytest.raises(Exhausted, match="runs"), root.child("e", Limits(PLENTY, 100)).running():
        pass
    assert (root.used.runs, root.used.running, root.left().running) == (4, 0, 3)


def test_eight_children_on_one_remaining_call_make_one_call():
    root = budget(turns=3)
    root.spend(Amount(turns=2))
    calls, refused, barrier = [], [], threading.Barrier(8)

    def run(number):
        child = root.child(str(number), Limits(PLENTY, 100))
        barrier.wait()
        try:
            reservation = child.reserve(Amount(turns=1, tokens=10))
        except Exhausted:
            refused.append(number)
        else:
            calls.append(number)
            reservation.settle(Amount(turns=1, tokens=10))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(calls), len(refused), root.used.turns) == (1, 7, 3)


def test_a_manifest_sets_every_limit():
    limits = limits_of(
        bundle(delegate__agents=["sha256:" + "a" * 64], delegate__max_depth=1, delegate__max_runs=5).facts
    )
    assert limits == Limits(
        Amount(
            turns=12,
            tool_calls=60,
            tokens=60000,
            cost_micros=200000,
            files_read=5000,
            bytes_read=67108864,
            bytes_written=1048576,
            bytes_output=65536,
            runs=6,
            running=5,
        ),
        180,
    )


CHEAP = ModelFacts(100_000, Tier(1_000_000, 100_000, 2_000_000))
DEAR = ModelFacts(100_000, Tier(3_000_000, 300_000, 15_000_000), 200, Tier(6_000_000, 600_000, 22_000_000))


def test_a_call_is_bounded_by_its_bytes_and_the_dearest_model():
    assert most_of(100, 50, [CHEAP]) == Amount(turns=1, tokens=150, cost_micros=200)
    assert most_of(100, 50, [CHEAP, DEAR]) == Amount(turns=1, tokens=150, cost_micros=1050)
    assert most_of(201, 50, [DEAR]).cost_micros == 201 * 6 + 50 * 22
    assert most_of(100, 50, [FREE]) == Amount(turns=1, tokens=150)


@pytest.mark.parametrize("prices", [[], [None], [CHEAP, None]])
def test_a_model_of_unknown_price_has_no_bound(prices):
    with pytest.raises(PriceUnknown):
        most_of(100, 50, prices)


EXCHANGE = Exchange(prompt_bytes=400, answer_bytes=160)


def usage(**counts):
    return Usage(**{"input_tokens": 100, "output_tokens": 40, **counts})


def test_usage_is_charged_as_the_provider_says():
    assert used_by(usage(), EXCHANGE, CHEAP) == Amount(turns=1, tokens=140, cost_micros=180)
    assert used_by(usage(cached_tokens=100), EXCHANGE, CHEAP) == Amount(turns=1, tokens=140, cost_micros=90)
    assert used_by(usage(input_tokens=25, output_tokens=10), EXCHANGE, FREE) == Amount(turns=1, tokens=35)


@pytest.mark.parametrize(
    "lie",
    [
        None,
        usage(estimated=True),
        usage(input_tokens=0),
        usage(input_tokens=24),
        usage(output_tokens=0),
        usage(output_tokens=9),
        usage(input_tokens=-5),
        usage(output_tokens=-1),
        usage(cached_tokens=-1),
        usage(cached_tokens=101),
        usage(input_tokens=1.5),
        usage(output_tokens=True),
    ],
    ids=repr,
)
def test_usage_that_lies_low_is_not_believed(lie):
    assert used_by(lie, EXCHANGE, CHEAP) is None
    root = budget()
    most = most_of(400, 100, [CHEAP])
    assert root.reserve(most).settle(used_by(lie, EXCHANGE, CHEAP)) == most


def test_usage_of_a_model_without_a_price_is_not_believed():
    assert used_by(usage(), EXCHANGE, None) is None


AMOUNTS = st.builds(Amount, turns=st.integers(0, 2), tokens=st.integers(0, 40), cost_micros=st.integers(0, 9))
CLAIMS = st.none() | st.builds(
    Amount, turns=st.integers(-1, 3), tokens=st.integers(-5, 60), cost_micros=st.integers(0, 9)
)
FEW = st.builds(Amount, turns=st.integers(0, 9), tokens=st.integers(0, 150), cost_micros=st.integers(0, 30))


class Tree(RuleBasedStateMachine):
    """Runs that start runs, reserve, and settle with whatever a provider says."""

    def __init__(self):
        super().__init__()
        self.most = [Amount(turns=12, tokens=300, cost_micros=60)]
        self.runs = [Budget("root", Limits(self.most[0], 100), Clock())]
        self.parents = [None]
        self.charges: list[tuple[int, Amount]] = []
        self.open: list[tuple[int, object]] = []

    @precondition(lambda self: len(self.runs) < 7)
    @rule(parent=st.integers(0, 6), most=FEW)
    def start(self, parent, most):
        parent %= len(self.runs)
        self.runs.append(self.runs[parent].child(str(len(self.runs)), Limits(most, 100)))
        self.parents.append(parent)
        self.most.append(most)

    @rule(run=st.integers(0, 6), amount=AMOUNTS)
    def reserve(self, run, amount):
        run %= len(self.runs)
        room = self.runs[run].left()
        fits = all(getattr(amount, name) <= getattr(room, name) for name in NAMES)
        try:
            self.open.append((run, self.runs[run].reserve(amount)))
            assert fits
        except Exhausted:
            assert not fits

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 50), claim=CLAIMS)
    def settle(self, which, claim):
        run, reservation = self.open.pop(which % len(self.open))
        self.charges.append((run, reservation.settle(claim)))

    def line(self, run):
        while run is not None:
            yield run
            run = self.parents[run]

    @invariant()
    def totals_are_the_sums_of_the_leaves(self):
        for number, run in enumerate(self.runs):
            below = [amount for each, amount in self.charges if number in self.line(each)]
            assert run.used == sum(below, Amount())

    @invariant()
    def nothing_is_overspent(self):
        for number, run in enumerate(self.runs):
            waiting = [each.amount for owner, each in self.open if number in self.line(owner)]
            total = run.used + sum(waiting, Amount())
            assert all(getattr(total, name) <= getattr(self.most[number], name) for name in NAMES)


Tree.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestTree = Tree.TestCase
