"""Costs equal a ledger made by hand; totals count every attempt once."""

import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.config.presets import PRESETS
from lyma_server.router.database import Database
from lyma_server.router.ledger import AttemptRow, Ledger, Totals, is_over_cap, midnight_before, spent, sum_of
from lyma_server.router.prices import FREE, ModelFacts, Tier, cost_micros, facts_of, is_local, price_of

NOON = datetime(2026, 11, 30, 12).timestamp()


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


# By hand, from models.toml: fresh x input + cached x cached + output x output, in micros a million tokens.
HAND_MADE = [
    ("anthropic", "claude-sonnet-5-5", 12_000, 10_000, 800, 13_000),  # 2000 x 2 + 10000 x 0.1 + 800 x 10
    ("anthropic", "claude-haiku-5-5", 100_000, 0, 1_000, 10_500),  # the limit itself is still the cheap tier
    ("anthropic", "claude-haiku-5-5", 100_001, 0, 1_000, 52_501),  # 50000.5 + 2500, half up
    ("openai", "gpt-6.1-sol", 272_001, 272_000, 10, 54_554),  # 1 x 4 + 272000 x 0.2 + 10 x 15
    ("deepseek", "deepseek-flash", 1_000, 900, 100, 155),  # 30 + 5.4 + 120 = 155.4
    ("qwen", "qwen3.8-flash", 10, 0, 0, 2),  # 1.5, half up
    ("qwen", "qwen3.8-flash", 3, 0, 0, 0),  # 0.45
    ("kimi", "kimi-k2.7-code", 1_000_000, 0, 1_000_000, 4_950_000),
    ("deepseek", "nobody-knows", 1_000, 0, 1_000, None),
    ("embedded", "anything", 1_000, 0, 1_000, 0),
]


@pytest.mark.parametrize(("vendor", "model", "tokens_in", "cached", "out", "micros"), HAND_MADE)
def test_cost_equals_the_one_made_by_hand(vendor, model, tokens_in, cached, out, micros):
    assert cost_micros(price_of(vendor, model), tokens_in, cached, out) == micros


def test_a_ledger_equals_the_one_made_by_hand(database):
    ledger = Ledger(database, wall=lambda: NOON)
    for vendor, model, tokens_in, cached, out, _ in HAND_MADE:
        cost = cost_micros(price_of(vendor, model), tokens_in, cached, out)
        ledger.record(AttemptRow("s", vendor, "aaa", model, "ok", 5, tokens_in, out, cached, cost))
    by_hand = {
        "anthropic": Totals(3, 212_001, 2_800, 10_000, 76_001),
        "openai": Totals(1, 272_001, 10, 272_000, 54_554),
        "deepseek": Totals(2, 2_000, 1_100, 900, 155, unpriced=1),
        "qwen": Totals(2, 13, 0, 0, 2),
        "kimi": Totals(1, 1_000_000, 1_000_000, 0, 4_950_000),
        "embedded": Totals(1, 1_000, 1_000, 0, 0),
    }
    assert ledger.today() == by_hand  # before it is written
    assert database.flush()
    assert ledger.today() == by_hand  # and after
    assert Ledger(database, wall=lambda: NOON).today() == by_hand
    assert spent(by_hand) == 5_080_712
    assert by_hand["deepseek"].shown_cost_micros is None
    assert by_hand["kimi"].shown_cost_micros == 4_950_000


def test_every_row_counts_once_while_others_write(database, tmp_path):
    other_database = Database(tmp_path / "state.db")
    ledger, other = Ledger(database, wall=lambda: NOON), Ledger(other_database, wall=lambda: NOON)
    row = AttemptRow("s", "openai", "aaa", "gpt", "rate_limit", 5, 1, 1, 0, 1)
    for attempts in range(1, 200):
        ledger.record(row)
        assert ledger.today()["openai"].attempts == attempts
        other.today()
    assert database.flush()
    other.record(row)
    assert other.today()["openai"].attempts == 200
    assert other_database.flush()
    assert ledger.today()["openai"].attempts == 200
    other_database.close()


def test_a_row_that_was_committed_a_moment_ago_counts_once(database):
    ledger = Ledger(database, wall=lambda: NOON)
    row = AttemptRow("s", "openai", "aaa", "gpt", "ok", 5)
    ledger.record(row)
    assert database.flush()
    saved, database._saved = database._saved, 0  # on disk, but the writer has not said so yet
    assert ledger.today()["openai"].attempts == 1
    database._saved = saved
    ledger.record(row)
    assert database.flush()
    assert ledger.today()["openai"].attempts == 2


def test_yesterday_does_not_count_and_the_old_is_removed(database):
    now = NOON
    ledger = Ledger(database, wall=lambda: now, keep_days=30)
    row = AttemptRow("s", "openai", "aaa", "gpt", "ok", 5, cost_micros=7, estimated=True)
    ledger.record(row)
    assert database.flush()
    assert ledger.today() == {"openai": Totals(1, cost_micros=7, estimated=True)}
    now = midnight_before(NOON) + 86_400 + 3_700
    assert ledger.today() == {}
    ledger.record(row)
    assert ledger.today()["openai"].attempts == 1
    now += 29 * 86_400
    later = Ledger(database, wall=lambda: now, keep_days=29)
    later.record(row)
    assert database.flush()
    assert database.read("SELECT count(*) FROM attempts") == [(2,)]


def test_without_a_disk_it_counts_in_memory(tmp_path):
    (tmp_path / "file").touch()
    for path in (None, tmp_path / "file" / "state.db"):
        database = Database(path)
        ledger = Ledger(database, wall=lambda: NOON)
        for _ in range(3):
            ledger.record(AttemptRow("s", "openai", "aaa", "gpt", "ok", 5, 1, 2))
        database.flush()
        assert ledger.today() == {"openai": Totals(3, 3, 6)}
        database.close()
        assert ledger.today() == {"openai": Totals(3, 3, 6)}


def test_rows_on_disk_still_count_when_the_disk_goes_away(database):
    ledger = Ledger(database, wall=lambda: NOON)
    ledger.record(AttemptRow("s", "openai", "aaa", "gpt", "ok", 5))
    database.flush()
    assert ledger.today()["openai"].attempts == 1
    database.close()
    ledger.record(AttemptRow("s", "openai", "aaa", "gpt", "ok", 5))
    assert ledger.today()["openai"].attempts == 2


@pytest.mark.parametrize(("cap", "over"), [(None, False), (100, False), (57, True), (58, False), (0, True)])
def test_the_cap_of_a_day(cap, over):
    assert is_over_cap({"a": Totals(cost_micros=50), "b": Totals(cost_micros=7, unpriced=3)}, cap) is over


def test_a_cap_of_nothing_allows_nothing():
    assert is_over_cap({}, 0)


def test_totals_of_a_turn():
    rows = [
        AttemptRow("s", "a", "k", "m", "ok", 1, 2, 3, 1, 4),
        AttemptRow("s", "b", "k", "m", "ok", 1, 5, 6, 0, None, True),
    ]
    assert sum_of(rows) == Totals(2, 7, 9, 1, 4, 1, True)


def test_midnight_is_the_local_one():
    assert midnight_before(NOON) == datetime(2026, 11, 30).timestamp()
    assert midnight_before(datetime(2026, 11, 30).timestamp()) == datetime(2026, 11, 30).timestamp()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="no tzset here")
@pytest.mark.parametrize("hours", [0, 1, 5, 23])
def test_midnight_of_a_day_on_which_clocks_change(monkeypatch, hours):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        midnight = datetime(2026, 10, 25).timestamp()
        assert midnight_before(midnight + hours * 3600) == midnight
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_dated_name_is_the_model_without_its_date():
    assert facts_of("anthropic", "claude-opus-5-5-20261001") == facts_of("anthropic", "claude-opus-5-5")
    assert facts_of("openai", "gpt-6.1-sol-2026-10-02") == facts_of("openai", "gpt-6.1-sol")
    assert facts_of("anthropic", "claude-opus-9") is None
    assert facts_of("elsewhere", "claude-opus-5-5") is None


def test_what_runs_here_is_free():
    for url in ("http://127.0.0.1:8080/v1", "http://localhost:11434/v1", "http://[::1]:1/v1"):
        assert price_of("llama.cpp", "auto", url) == FREE
    for url in (None, "", "https://api.openai.com/v1", "http://127.0.0.1.example.com", "http://[broken"):
        assert not is_local(url)
        assert price_of("llama.cpp", "auto", url) is None


def test_every_model_that_a_preset_proposes_has_facts():
    for name, preset in PRESETS.items():
        proposed = {preset.model, preset.fast, preset.balanced, preset.strong} - {None, "auto"}
        if preset.key_variable:
            assert {model for model in proposed if facts_of(name, model) is None} == set()


tokens = st.integers(0, 10**9)
prices = st.integers(0, 10**9)


@given(tokens, tokens, tokens, prices, prices, prices)
def test_cost_is_an_integer_within_half_a_micro(tokens_in, cached, out, price_in, price_cached, price_out):
    cached = min(cached, tokens_in)
    exact = (tokens_in - cached) * price_in + cached * price_cached + out * price_out
    cost = cost_micros(ModelFacts(1, Tier(price_in, price_cached, price_out)), tokens_in, cached, out)
    assert isinstance(cost, int)
    assert abs(cost * 1_000_000 - exact) <= 500_000


def test_nonsense_counts_never_make_money():
    facts = facts_of("anthropic", "claude-opus-5-5")
    assert cost_micros(facts, -5, -5, -5) == 0
    assert cost_micros(facts, 10, 1_000, 0) == cost_micros(facts, 10, 10, 0)
