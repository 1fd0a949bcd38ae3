"""Whose turn it is, and who is left out."""

import pytest

from lyma_server.router.keyring import KeyRing
from lyma_server.router.policy import Decision, Failure, decide
from lyma_server.router.standing import (
    FREE,
    Deployment,
    Held,
    Mark,
    RingKey,
    Snapshot,
    Standing,
    account_in,
    config_stamp,
    marks_of,
    standing_of,
    strike_mark,
    strikes_of,
)

A, B, C = RingKey("aaa"), RingKey("bbb"), RingKey("ccc")
OUT, SHARED = Standing("out", 9.0), Standing("shared", 9.0)
OURS = Deployment("openai", "gpt", (A, B, C), "stamp")


def all_free(_key):
    return FREE


def standings(**by_fingerprint):
    return lambda key: by_fingerprint.get(key.fingerprint, FREE)


def test_a_session_stays_at_its_key():
    ring = KeyRing((A, B, C))
    for _ in range(5):
        assert ring.pick("s", all_free) == A
        ring.answered("s", "aaa")


def test_a_failure_moves_on_and_the_next_ask_starts_at_the_key_that_answered():
    ring = KeyRing((A, B, C))
    assert ring.pick("s", all_free) == A
    ring.failed("s", "aaa")
    assert ring.pick("s", all_free, {"aaa"}) == B
    ring.failed("s", "bbb")
    assert ring.pick("s", all_free, {"aaa", "bbb"}) == C
    ring.answered("s", "ccc")
    assert ring.usable("s", all_free) == (C, A, B)
    assert ring.pick("new", all_free) == C
    ring.failed("s", "ccc")
    assert ring.usable("s", all_free) == (A, B, C)


def test_each_session_has_its_own_place():
    ring = KeyRing((A, B, C))
    ring.answered("one", "aaa")
    ring.answered("two", "bbb")
    ring.failed("two", "bbb")
    assert ring.pick("one", all_free) == A
    assert ring.pick("two", all_free) == C


def test_several_calls_that_report_one_failure_move_on_once():
    ring = KeyRing((A, B, C))
    for _ in range(3):
        ring.failed("s", "aaa")
    assert ring.pick("s", all_free) == B
    assert ring.pick("other", all_free) == B


def test_a_failure_moves_on_from_a_key_that_stood_in_for_one_that_is_out():
    ring = KeyRing((A, B, C))
    assert ring.pick("s", standings(aaa=OUT)) == B
    ring.failed("s", "bbb")
    assert ring.pick("s", standings(aaa=OUT)) == C


def test_keys_that_are_out_or_tried_are_left_out_and_shared_ones_come_last():
    ring = KeyRing((A, B, C))
    assert ring.usable("s", standings(aaa=SHARED, bbb=OUT)) == (C, A)
    assert ring.usable("s", standings(aaa=SHARED), tried={"ccc"}) == (B, A)
    assert ring.pick("s", standings(aaa=OUT, bbb=OUT, ccc=OUT)) is None
    assert ring.pick("s", standings(aaa=OUT, bbb=OUT, ccc=SHARED)) == C


def test_every_call_spreads_the_load():
    ring = KeyRing((A, B, C), "every-call")
    assert [ring.pick("s", all_free) for _ in range(4)] == [A, B, C, A]
    ring.answered("s", "aaa")
    ring.failed("s", "bbb")
    assert ring.pick("s", all_free) == B
    assert ring.pick("s", standings(ccc=OUT)) == A


def test_the_oldest_sessions_are_forgotten():
    ring = KeyRing((A, B))
    ring.answered("first", "bbb")
    for n in range(2000):
        ring.answered(str(n), "aaa")
    assert ring.pick("first", all_free) == A


# Standings


def snapshot(**marks):
    return Snapshot(
        {("openai", subject.replace("_", ":"), model): held for subject, (model, held) in marks.items()},
        {("openai", "aaa"): "org", ("openai", "bbb"): "org"},
    )


def test_a_mark_holds_until_its_time_for_its_model():
    held = Held(10.0, "rate_limit")
    for model, freedom in (("gpt", "out"), ("*", "out"), ("other", "free")):
        seen = snapshot(key_aaa=(model, held))
        assert standing_of(A, OURS, seen, 9.9).freedom == freedom
        assert standing_of(A, OURS, seen, 10.0) == FREE
        assert standing_of(B, OURS, seen, 9.9) == FREE
    assert standing_of(A, OURS, snapshot(key_aaa=("gpt", held)), 9.0) == Standing("out", 10.0, "rate_limit")


def test_the_longest_mark_speaks():
    seen = snapshot(key_aaa=("gpt", Held(10.0, "rate_limit")), provider=("*", Held(99.0, "wrong_url")))
    assert standing_of(A, OURS, seen, 0.0) == Standing("out", 99.0, "wrong_url")
    assert standing_of(C, OURS, seen, 0.0) == Standing("out", 99.0, "wrong_url")


def test_keys_of_a_labelled_account_are_skipped_with_it():
    one, two, other = RingKey("aaa", "work"), RingKey("bbb", "work"), RingKey("ccc", "home")
    seen = snapshot(account_work=("gpt", Held(10.0, "rate_limit")))
    assert [standing_of(key, OURS, seen, 0.0).freedom for key in (one, two, other)] == ["out", "out", "free"]


def test_keys_of_a_learned_account_come_last_but_are_not_excluded():
    seen = snapshot(key_aaa=("gpt", Held(10.0, "rate_limit")), learned_org=("gpt", Held(10.0, "rate_limit")))
    assert [standing_of(key, OURS, seen, 0.0).freedom for key in (A, B, C)] == ["out", "shared", "free"]
    assert standing_of(B, OURS, seen, 11.0) == FREE


def test_a_change_of_the_configuration_frees_what_was_disabled():
    seen = snapshot(key_aaa=("*", Held(10.0, "auth_invalid", "stamp")))
    assert standing_of(A, OURS, seen, 0.0).freedom == "out"
    assert standing_of(A, Deployment("openai", "gpt", (A,), "another"), seen, 0.0) == FREE


def test_a_model_without_tools_may_still_be_asked_without_them():
    seen = snapshot(provider=("gpt", Held(10.0, "capability_missing")))
    assert standing_of(A, OURS, seen, 0.0).freedom == "out"
    assert standing_of(A, OURS, seen, 0.0, {"capability_missing"}) == FREE


def test_the_stamp_changes_with_all_that_matters():
    stamps = {
        config_stamp(None, (A,)),
        config_stamp("https://a", (A,)),
        config_stamp("https://b", (A,)),
        config_stamp("https://a", (A, B)),
        config_stamp("https://a", (RingKey("aaa", "work"),)),
    }
    assert len(stamps) == 5
    assert config_stamp("https://a", (A,)) in stamps


# What a decision holds


def decision(**fields):
    return Decision(
        **{"class_": "x", "key": "none", "provider": "none", "request": "fail", "cooldown_s": 60.0, **fields}
    )


WORK = RingKey("www", "work")


@pytest.mark.parametrize(
    ("fields", "key", "learned", "held"),
    [
        ({}, A, "org", []),
        ({"key": "cooldown_account_model"}, A, None, [("key:aaa", "gpt", "")]),
        ({"key": "cooldown_account_model"}, WORK, None, [("account:work", "gpt", "")]),
        ({"key": "cooldown_account_model"}, A, "org", [("key:aaa", "gpt", ""), ("learned:org", "gpt", "")]),
        ({"key": "disable"}, WORK, "org", [("key:www", "*", "stamp")]),
        ({"key": "disable_account"}, WORK, None, [("account:work", "*", "stamp")]),
        ({"key": "disable_account"}, A, "org", [("key:aaa", "*", "stamp"), ("learned:org", "*", "stamp")]),
        ({"key": "block_model"}, WORK, "org", [("key:www", "gpt", "stamp")]),
        ({"key": "block_model", "class_": "capability_missing"}, A, None, [("provider", "gpt", "stamp")]),
        ({"provider": "disable_provider"}, A, None, [("provider", "*", "stamp")]),
    ],
)
def test_what_a_decision_holds(fields, key, learned, held):
    decided = decision(**fields)
    expected = [Mark("openai", subject, model, 60.0, decided.class_, stamp) for subject, model, stamp in held]
    assert list(marks_of(decided, key, OURS, learned)) == expected


def test_a_mark_without_a_length_holds_nothing():
    (mark,) = marks_of(decision(key="disable", cooldown_s=None), A, OURS, None)
    assert mark.seconds == 0.0


def test_strikes_belong_to_the_account():
    seen = snapshot(account_work=("gpt", Held(0.0, "rate_limit", strikes=3)))
    assert (strikes_of(WORK, OURS, seen), strikes_of(A, OURS, seen)) == (3, 0)
    assert strike_mark(WORK, OURS) == ("openai", "account:work", "gpt")


def test_a_server_error_holds_nothing_against_a_key():
    for status in (500, 502, 503, 529):
        assert marks_of(decide(Failure("openai", "http", status), 0.0), A, OURS, "org") == ()


@pytest.mark.parametrize("headers", [{}, {"openai-organization": ""}, {"x-request-id": "org-1"}])
def test_other_headers_tell_no_account(headers):
    assert account_in(headers) is None


def test_the_account_is_learned_from_headers_as_a_hash():
    one, two = account_in({"openai-organization": "org-1"}), account_in({"openai-organization": "org-2"})
    assert one == account_in({"anthropic-organization-id": "org-1", "openai-organization": "org-2"}) != two
    assert len(one) == 12
    assert "org" not in one + two
