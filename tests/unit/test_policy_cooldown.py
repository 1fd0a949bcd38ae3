"""How long an account rests, and who says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.router.cooldown import cooldown_length, go_duration, stated_wait

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z, a Monday
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({}, "", 60.0),
        ({"retry-after-ms": "2500", "retry-after": "9"}, "try again in 30s", 2.5),
        ({"retry-after": "9", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "30s"}, "", 9.0),
        ({"retry-after": " 11143 "}, "", 11143.0),
        ({"retry-after": "2.5"}, "", 2.5),
        ({"retry-after": "Mon, 21 Sep 2026 14:15:00 GMT", "date": DATE}, "", 100.0),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:21 GMT"}, "", 1.0),
        ({"retry-after": "Mon, 21 Sep 2026 14:00:00 GMT", "date": DATE}, "", 1.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1174ms"}, "", 1.174),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "174ms"}, "", 1.0),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, "", 60.0),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-09-21T14:14:00Z",
                "anthropic-ratelimit-requests-remaining": "12",
                "anthropic-ratelimit-requests-reset": "2026-09-21T18:00:00Z",
                "date": DATE,
            },
            "",
            40.0,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "20s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "40s",
            },
            "",
            40.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000000500"}, "", 1.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000090000"}, "", 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000030"}, "", 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, "", 30.0),
        ({"x-ratelimit-remaining": "0"}, "try again in 20s", 20.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, "", 60.0),
        ({"retry-after": "soon", "retry-after-ms": "later"}, "", 60.0),
        ({"retry-after": "-5"}, "", 60.0),
        ({"retry-after": "inf"}, "", 60.0),
        ({"retry-after": "0"}, "", 1.0),
        ({"retry-after": "999999999"}, "", 86_400.0),
        ({}, "Please try again in 6m0s. Visit the page.", 360.0),
        ({}, "Rate limit reached. Please try again in 1.5s.", 1.5),
        ({}, "try again in 900ms", 1.0),
        ({}, "try again in 1900 milliseconds", 1.9),
        ({}, "Please retry after 30 seconds.", 30.0),
        ({}, "please try again after 2 seconds", 2.0),
        ({}, "Please retry in 12.5s.", 12.5),
        ({}, "try again in 1 minute and 5 seconds", 65.0),
        ({}, "wait for 2 minutes", 120.0),
        ({}, "available again in 3 hours", 10_800.0),
        ({}, "try again in 2 days", 86_400.0),
        ({}, "try again in 5 parsecs", 60.0),
        ({}, "try again in 2026, or try again in 7s", 7.0),
        ({}, "try again later", 60.0),
    ],
)
def test_the_first_that_can_be_read_speaks(headers, message, seconds):
    assert cooldown_length(headers, message, NOW) == pytest.approx(seconds)


def test_the_servers_own_clock_counts():
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert stated_wait(headers, "", NOW) == 30.0


@pytest.mark.parametrize(
    ("strikes", "seconds"), [(0, 60), (1, 120), (2, 240), (3, 480), (4, 900), (5, 900), (10**9, 900)]
)
def test_the_default_doubles_up_to_a_quarter_of_an_hour(strikes, seconds):
    assert cooldown_length({}, "", NOW, strikes=strikes) == seconds


def test_strikes_do_not_touch_what_the_server_says():
    assert cooldown_length({"retry-after": "7"}, "", NOW, strikes=5) == 7.0


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 60.0), (0.5, 63.0), (0.999999, 66.0)])
def test_jitter_adds_up_to_a_tenth(chance, seconds):
    assert cooldown_length({}, "", NOW, chance=chance) == pytest.approx(seconds, abs=0.001)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h2m3.5s", 3723.5),
        ("6m0s", 360.0),
        ("174ms", 0.174),
        ("5µs", 5e-6),
        ("5us", 5e-6),
        ("7ns", 7e-9),
        ("0s", 0.0),
        ("", None),
        ("s", None),
        ("5", None),
        ("5s later", None),
        ("5x", None),
    ],
)
def test_go_durations(text, seconds):
    assert go_duration(text) == pytest.approx(seconds)


@given(st.text(), st.text(), st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_every_length_is_between_a_second_and_a_day(value, message, strikes, chance):
    headers = {"retry-after": value, "date": value, "x-ratelimit-remaining": "0", "x-ratelimit-reset": value}
    assert 1.0 <= cooldown_length(headers, message, NOW, strikes=strikes, chance=chance) <= 86_400.0
