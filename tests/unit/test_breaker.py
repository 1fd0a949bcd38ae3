"""When a provider is left alone, and for how long."""

import pytest

from lyma_server.router.breaker import FIRST_S, LONGEST_S, PROBE_S, Breaker
from lyma_server.router.standing import OpenBreaker


def opened(now=0.0):
    breaker = Breaker()
    for _ in range(3):
        breaker.failed(now, "server_error")
    return breaker


def test_three_failures_in_a_row_open_it():
    breaker = Breaker()
    assert not breaker.failed(0.0)
    assert not breaker.failed(1.0)
    assert breaker.state(1.0) == "closed"
    assert breaker.failed(2.0, "server_error")
    assert (breaker.state(2.0), breaker.until, breaker.reason) == ("open", 2.0 + FIRST_S, "server_error")
    assert not breaker.admits(2.0)
    assert not breaker.admit(2.0)


def test_a_success_between_starts_the_row_anew():
    breaker = Breaker()
    for now in range(10):
        breaker.failed(now * 100.0)
        breaker.failed(now * 100.0)
        assert not breaker.succeeded(now * 100.0)
    assert breaker.state(1000.0) == "closed"


def test_over_half_of_six_in_a_minute_open_it():
    breaker = Breaker()
    for now, fails in enumerate([True, False, True, False, True]):
        assert not (breaker.failed(float(now)) if fails else breaker.succeeded(float(now)))
    assert breaker.failed(6.0)


def test_exactly_half_does_not():
    breaker = Breaker()
    for now, fails in enumerate([True, False, False, True, False, True]):
        assert not (breaker.failed(float(now)) if fails else breaker.succeeded(float(now)))


def test_what_is_over_a_minute_old_does_not_count():
    breaker = Breaker()
    for now, fails in enumerate([True, True, False, True, False]):
        assert not (breaker.failed(float(now)) if fails else breaker.succeeded(float(now)))
    assert not breaker.failed(70.0)


def test_half_open_admits_exactly_one():
    breaker = opened()
    assert not breaker.admit(FIRST_S - 0.1)
    assert breaker.state(FIRST_S) == "half_open"
    assert breaker.admits(FIRST_S)
    assert breaker.admit(FIRST_S)
    assert not breaker.admits(FIRST_S)
    assert not breaker.admit(FIRST_S)


def test_a_probe_that_answers_closes_it():
    breaker = opened()
    assert breaker.admit(FIRST_S)
    assert breaker.succeeded(FIRST_S + 1)
    assert breaker.state(FIRST_S + 1) == "closed"
    assert not breaker.failed(FIRST_S + 1)
    assert breaker.admit(FIRST_S + 1)
    assert breaker.admit(FIRST_S + 1)


def test_a_probe_that_fails_opens_it_twice_as_long_up_to_five_minutes():
    breaker, now, lengths = opened(), 0.0, []
    for _ in range(7):
        now = breaker.until
        assert breaker.admit(now)
        assert breaker.failed(now, "timeout")
        lengths.append(breaker.until - now)
    assert lengths == [30.0, 60.0, 120.0, 240.0, LONGEST_S, LONGEST_S, LONGEST_S]
    assert breaker.admit(breaker.until)
    breaker.succeeded(breaker.until)
    for _ in range(3):
        breaker.failed(5000.0)
    assert breaker.until == 5000.0 + FIRST_S


def test_a_probe_without_a_verdict_makes_room_for_another():
    breaker = opened()
    assert breaker.admit(FIRST_S)
    breaker.released()
    assert breaker.admit(FIRST_S)
    assert not breaker.admit(FIRST_S)
    assert breaker.admit(FIRST_S + PROBE_S)


def test_a_late_verdict_of_an_older_call_leaves_it_open():
    breaker = opened()
    assert not breaker.succeeded(1.0)
    assert not breaker.failed(1.0)
    assert (breaker.state(1.0), breaker.until) == ("open", FIRST_S)


def test_a_dead_host_opens_it_at_once():
    breaker = Breaker()
    assert breaker.opened_for(10.0, 100.0, "connect_error")
    assert breaker.state(109.9) == "open"
    assert breaker.admit(110.0)
    assert breaker.opened_for(30.0, 110.0, "dns_error")
    assert breaker.until == 140.0
    breaker.opened_for(10.0, 111.0)
    assert breaker.until == 140.0


@pytest.mark.parametrize("shared", [None, OpenBreaker(5.0, 15.0)])
def test_what_others_closed_or_forgot_changes_nothing(shared):
    breaker = Breaker()
    breaker.adopt(shared, 10.0)
    assert breaker.state(10.0) == "closed"


def test_what_others_opened_is_open_here_too():
    breaker = Breaker()
    breaker.adopt(OpenBreaker(70.0, 60.0, "overloaded"), 10.0)
    assert (breaker.state(10.0), breaker.until, breaker.reason) == ("open", 70.0, "overloaded")
    breaker.adopt(OpenBreaker(60.0, 60.0), 10.0)
    assert breaker.until == 70.0
    assert breaker.admit(70.0)
    breaker.failed(70.0)
    assert breaker.until == 70.0 + 120.0
    breaker.adopt(OpenBreaker(400.0, 300.0), 71.0)
    assert breaker.until == 400.0
