"""The one error for all candidates."""

from __future__ import annotations

import pytest

from lyma_server.errors import AllFailed
from lyma_server.router.policy import CLASSES
from lyma_server.router.report import Fate, all_failed, duration, interrupted


def test_each_candidate_is_listed_and_the_earliest_retry_is_given() -> None:
    fates = [
        Fate("anthropic", "m", "rate_limit", "…ab21", status=429, retry_s=59.2),
        Fate("anthropic", "m", "rate_limit", "…cd34", status=429, retry_s=7200),
        Fate("openai", "m", "auth_invalid", "…ef56", "https://api.openai.com/v1", 401, 1800),
        Fate("local", "m", "connect_error", None, "http://127.0.0.1:8080/v1", retry_s=10),
    ]
    error = all_failed(fates, "what servers said")
    assert error.message == (
        "No provider could answer: anthropic (2 keys) is limiting the rate of requests, next try in 59 s; "
        "openai (key …ef56) did not accept the key at https://api.openai.com/v1, next try in 30 min "
        "(check the key, the base URL and its region); "
        "local could not be reached at http://127.0.0.1:8080/v1, next try in 10 s "
        "(check that it runs, its base URL, and HTTPS_PROXY where a proxy is needed)."
    )
    assert error.data["retry_after_ms"] == 10_000
    assert error.detail == "what servers said"
    assert (error.exit_code, error.code) == (4, -31006)


def test_a_single_candidate_needs_no_list() -> None:
    assert all_failed([Fate("local", "m", "timeout")]).message == (
        "local did not answer in time (check the network, and HTTPS_PROXY where a proxy is needed)."
    )


def test_no_candidate_at_all_says_what_to_do() -> None:
    assert "lyma setup" in all_failed([]).message
    assert all_failed([Fate("openai", "m", "no_key")]).message == "openai has no key (add one with `lyma keys add`)."


def test_a_start_that_failed_says_why() -> None:
    error = all_failed([Fate("embedded", "auto", "connect_error", public="The model file is missing: install it.")])
    assert error.message == "embedded could not start (The model file is missing: install it)."


@pytest.mark.parametrize("class_", CLASSES)
def test_every_class_has_words(class_: str) -> None:
    assert isinstance(all_failed([Fate("p", "m", class_)]), AllFailed)
    assert "p " in interrupted("p", class_, "said", []).message


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (59, "59 s"), (120, "2 min"), (11_143, "3 h")])
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
