"""The next step of a call, from a decision and where the call stands."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.router.actions import RequestAction
from lyma_server.router.policy import CLASSES, Decision
from lyma_server.router.step import Attempted, Facts, Step, next_step

HERE = Facts("openai", "gpt", keys_left=2, providers_left=1, candidates=4, wait_s=2.0, can_shrink=True, can_repair=True)
ALONE = Facts("openai", "gpt")


def decision(class_, request=None):
    row = CLASSES[class_]
    return Decision(class_, row.key, row.provider, request or row.request)


def been(class_, kind, provider="openai"):
    return Attempted(provider, "gpt", class_, kind)


@pytest.mark.parametrize(
    ("class_", "here", "kinds"),
    [
        # In turn: everything is left; no key; no other provider either; nothing to shrink or repair; nothing to wait for.
        ("rate_limit", HERE, ["rotate", "fallback", "wait", "wait", "fail"]),
        ("auth_invalid", HERE, ["rotate", "fallback", "wait", "wait", "fail"]),
        ("server_error", HERE, ["rotate", "fallback", "wait", "wait", "fail"]),
        ("connect_error", HERE, ["fallback", "fallback", "wait", "wait", "fail"]),
        ("stalled", HERE, ["fallback", "fallback", "wait", "wait", "fail"]),
        ("model_unavailable", HERE, ["rotate", "fallback", "fail", "fail", "fail"]),
        ("request_exceeds_tier", HERE, ["fallback", "fallback", "shrink", "fail", "fail"]),
        ("content_filter", HERE, ["fallback", "fallback", "fail", "fail", "fail"]),
        ("payload_too_large", evolve(HERE, larger_left=True), ["shrink", "shrink", "shrink", "fail", "fail"]),
        ("context_overflow", evolve(HERE, larger_left=True), ["shrink", "shrink", "shrink", "fallback", "fallback"]),
        ("context_overflow", HERE, ["shrink", "shrink", "shrink", "fail", "fail"]),
        ("history_invalid", HERE, ["repair", "repair", "repair", "fail", "fail"]),
        ("param_unsupported", HERE, ["repair", "repair", "repair", "fail", "fail"]),
        ("protocol_error", HERE, ["retry", "retry", "retry", "retry", "retry"]),
        ("bad_request", HERE, ["fail"] * 5),
        ("cancelled", HERE, ["fail"] * 5),
        ("ok", HERE, ["done"] * 5),
        ("truncated", HERE, ["done"] * 5),
        ("tool_args_invalid", HERE, ["done"] * 5),
        ("unknown", HERE, ["fallback", "fallback", "wait", "wait", "fail"]),
    ],
)
def test_the_first_move_that_is_possible(class_, here, kinds):
    no_key = evolve(here, keys_left=0)
    no_provider = evolve(no_key, providers_left=0)
    no_mending = evolve(no_provider, can_shrink=False, can_repair=False)
    nothing = evolve(no_mending, wait_s=None)
    found = [next_step(decision(class_), facts).kind for facts in (here, no_key, no_provider, no_mending, nothing)]
    assert found == kinds


def test_where_no_other_provider_is_left_another_key_is_tried():
    facts = evolve(HERE, providers_left=0)
    for class_ in ("timeout", "stalled", "stream_cut", "unknown"):
        assert next_step(decision(class_), facts).kind == "rotate"


@pytest.mark.parametrize(
    ("class_", "kind", "then"),
    [
        ("protocol_error", "retry", "fallback"),
        ("model_unavailable", "rotate", "fallback"),
        ("history_invalid", "repair", "fail"),
        ("param_unsupported", "repair", "fail"),
        ("content_filter", "fallback", "fail"),
    ],
)
def test_what_is_done_once_is_not_done_twice(class_, kind, then):
    assert next_step(decision(class_), HERE).kind == kind
    assert next_step(decision(class_), evolve(HERE, attempts=(been(class_, kind),))).kind == then


def test_once_means_at_one_provider_and_for_one_class():
    elsewhere = evolve(
        HERE, attempts=(been("history_invalid", "repair", "anthropic"), been("param_unsupported", "repair"))
    )
    assert next_step(decision("history_invalid"), elsewhere).kind == "repair"


def test_after_the_commit_point_it_fails():
    assert next_step(decision("server_error", "stream_interrupted"), HERE).kind == "fail"
    assert next_step(decision("content_filter", "stream_interrupted"), HERE).kind == "fail"


@pytest.mark.parametrize(
    ("wait_s", "deadline_s", "kind"),
    [(5.0, 600.0, "wait"), (5.1, 600.0, "fail"), (2.0, 1.0, "fail"), (0.0, 0.1, "wait")],
)
def test_it_waits_only_a_little_and_only_within_the_deadline(wait_s, deadline_s, kind):
    step = next_step(decision("rate_limit"), evolve(ALONE, wait_s=wait_s, deadline_s=deadline_s))
    assert step.kind == kind
    assert step.wait_s == (wait_s if kind == "wait" else 0.0)


def test_three_hours_are_never_slept():
    assert next_step(decision("rate_limit"), evolve(HERE, keys_left=0, wait_s=10_800.0)).kind == "fallback"
    assert next_step(decision("rate_limit"), evolve(ALONE, wait_s=10_800.0, deadline_s=99_999.0)).kind == "fail"


@pytest.mark.parametrize(("class_", "again"), [("protocol_error", "retry"), ("param_unsupported", "repair")])
def test_asking_the_same_candidate_again_takes_no_turn_from_another(class_, again):
    past = tuple(been(class_, kind, f"provider {n}") for n in range(3) for kind in (again, "fallback"))
    assert next_step(decision("server_error"), evolve(HERE, attempts=past, keys_left=0)).kind == "fallback"
    full = evolve(HERE, attempts=(been(class_, "fallback"),) * 5)
    assert next_step(decision(class_), full).kind == "fail"


def test_a_spent_deadline_fails():
    for class_ in set(CLASSES) - {"ok", "truncated", "tool_args_invalid"}:
        assert next_step(decision(class_), evolve(HERE, deadline_s=0.0)).kind == "fail"


def test_a_spent_budget_fails_and_refused_keys_do_not_count():
    spent = tuple(been("server_error", "rotate") for _ in range(5))
    free = tuple(been(class_, "rotate") for class_ in ("auth_invalid", "quota_exhausted", "warming_up") * 5)
    assert next_step(decision("server_error"), evolve(HERE, attempts=(*spent[:4], *free))).kind == "rotate"
    assert next_step(decision("server_error"), evolve(HERE, attempts=(*spent, *free))).kind == "fail"
    assert next_step(decision("auth_invalid"), evolve(HERE, attempts=(*spent, *free))).kind == "rotate"
    assert next_step(decision("server_error"), evolve(HERE, attempts=spent, candidates=9)).kind == "rotate"


def test_a_loading_model_is_waited_for():
    loading = decision("warming_up")
    assert next_step(loading, HERE) == Step("wait", 1.0)
    assert next_step(loading, evolve(HERE, spent_s=60.0)).kind == "fallback"
    assert next_step(loading, evolve(ALONE, spent_s=300.0)) == Step("wait", 1.0)
    assert next_step(loading, evolve(ALONE, deadline_s=1.0)).kind == "fail"


@given(
    class_=st.sampled_from(sorted(CLASSES)),
    request_=st.none() | st.sampled_from(RequestAction.__args__),
    keys=st.integers(0, 3),
    providers=st.integers(0, 3),
    wait=st.none() | st.floats(0, 99),
    deadline=st.floats(-1, 700),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_a_step_is_always_one_that_can_be_taken(class_, request_, keys, providers, wait, deadline, flags):
    facts = Facts("p", "m", (), keys, providers, 4, deadline, 0.0, wait, *flags)
    step = next_step(decision(class_, request_), facts)
    possible = {"rotate": keys, "fallback": providers or flags[0], "shrink": flags[1], "repair": flags[2]}
    assert possible.get(step.kind, True)
    assert step.wait_s <= min(5.0, max(deadline, 0.0))
