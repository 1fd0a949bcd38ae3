"""Every labelled command gets the verdict of its label."""

from __future__ import annotations

import json
import statistics
import time

import pytest

from lyma_server.executor import blacklist
from tests.commands import CASES, HOME, WORKSPACE, judged, row_verdict, rows
from tests.lyma import run_lyma

FILES = ("commands.json", "commands_more.json")


def wrong(row):
    verdict = row_verdict(row["command"], row["cwd"])
    if verdict.verdict == row["verdict"]:
        return None
    return f"{row['category']}: {row['command']!r} in {row['cwd']} should {row['verdict']}; {verdict.rule} {verdict.reason}"


@pytest.mark.parametrize("category", sorted({row["category"] for name in FILES for row in rows(name)}))
def test_every_row_gets_its_verdict(category):
    chosen = [row for name in FILES for row in rows(name) if row["category"] == category]
    assert chosen
    assert [fault for row in chosen if (fault := wrong(row))] == []


def test_a_rule_that_is_not_asked_would_not_have_spoken():
    for name in FILES:
        for row in rows(name):
            row_verdict(row["command"], row["cwd"])
    assert len(CASES) > 2000
    spoken = set()
    for case in CASES:
        effects = frozenset(effect.kind for effect in case.effects)
        asked = {rule.matcher for rule in blacklist.rules_about(case.program, effects)}
        speaking = {rule.matcher for rule in blacklist.RULES if rule.matcher(case) is not None}
        assert speaking <= asked, case.invocation.shown
        spoken |= speaking
    assert spoken == {rule.matcher for rule in blacklist.RULES}


def test_the_rows_are_all_there():
    labels = [row["verdict"] for row in rows("commands.json")]
    assert (labels.count("block"), labels.count("allow")) == (421, 400)
    assert len(rows("commands_more.json")) > 1500


def test_lyma_check_answers_every_row_in_order():
    chosen = rows("commands.json")[::9]
    stdin = "".join(json.dumps({**row, "home": HOME, "workspace": WORKSPACE}) + "\n" for row in chosen)
    result = run_lyma("check", "--jsonl", stdin=stdin)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0
    assert [answer["verdict"] for answer in answers] == [row["verdict"] for row in chosen]
    assert all(set(answer) == {"verdict", "rule", "reason"} for answer in answers)


def test_a_verdict_is_quick():
    times = []
    for row in rows("commands.json")[::4]:
        start = time.perf_counter()
        judged(row["command"], row["cwd"])
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.02  # 3 ms on a quiet machine; the benchmark holds the real figure


def test_every_row_of_the_short_list_is_met_and_has_a_twin():
    """A rule that no labelled command meets is not tested; its benign twins are the allowed rows."""
    met = {
        row_verdict(row["command"], row["cwd"]).reason
        for name in FILES
        for row in rows(name)
        if row["verdict"] == "block"
    }
    missing = [
        rule.reason for rule in blacklist.RULES if not any(reason.startswith(f"It {rule.reason}") for reason in met)
    ]
    assert missing == []


@pytest.mark.parametrize("rule", sorted({rule.name for rule in blacklist.RULES}))
def test_a_rule_blocks_what_is_filed_under_it(rule):
    named = {
        row_verdict(row["command"], row["cwd"]).rule for row in rows("commands_more.json") if row["category"] == rule
    }
    assert not named or rule in named
