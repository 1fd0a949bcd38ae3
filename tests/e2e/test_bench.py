"""The benchmarks themselves: they run, and what they print is what they measured."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from bench import cold, measure, run, sessions, shares
from bench.router import contest, faults

if TYPE_CHECKING:
    import pytest


def test_every_kind_of_call_is_made_by_both(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(contest, "ROUNDS", 2)
    monkeypatch.setattr(contest, "BATCHES", dict.fromkeys(contest.BATCHES, 1))
    monkeypatch.setattr(faults, "CALLS", 2)
    monkeypatch.setattr(contest, "LITELLM", tmp_path / "none")
    report = contest.report()
    assert len(report.figures) == 4
    assert all(figure.ours_ms > 0 and figure.theirs_ms > 0 for figure in report.figures)
    assert "LiteLLM" not in report.table
    assert report.table.startswith("| side by side | bare openai SDK | Lyma |\n")
    assert [line for line in report.table.splitlines() if line.endswith("| 2 |")] == [
        f"| {name} | 2 |" for name in faults.FAULTS
    ]


def test_every_figure_of_the_session_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in {"ROUNDS": 3, "AT_ONCE": 4, "FEW": 2, "MANY": 4, "LOGGED_ITEMS": 50, "LOADS": 1}.items():
        monkeypatch.setattr(sessions, name, few)
    figures = {figure.name: figure for figure in sessions.report().figures}
    assert len(figures) == 5
    assert all(figure.value > 0 for figure in figures.values())
    assert 20 < figures["4 asks at once in 4 sessions: the most memory"].value < 400


def test_a_cold_question_and_an_idle_server_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "RUNS", 2)
    monkeypatch.setattr(cold, "SERVERS", 1)
    first, memory = cold.report().figures
    assert first.ours_ms > 100
    assert first.theirs_ms > 100
    assert -20 < memory.value < 40


def test_where_the_time_goes_is_told_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "TURNS", 3)
    imports, turn = (table.splitlines()[2:] for table in shares.report().table.split("\n\n"))
    assert any(row.startswith("| openai | ") for row in imports)
    assert any(row.startswith("| lyma_server | ") for row in imports)
    assert any(row.startswith("| lyma_server.router | ") for row in turn)
    for rows in (imports, turn):
        assert 95 <= sum(int(row.split("|")[2].removesuffix(" % ")) for row in rows) <= 105


def test_the_document_is_not_written_with_a_part_of_the_figures() -> None:
    before = run.DOCUMENT.read_bytes()
    words = [sys.executable, "bench/run.py", "verdicts", "--document"]
    done = subprocess.run(words, cwd=contest.ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "goes with no name" in done.stderr
    assert run.DOCUMENT.read_bytes() == before


def test_a_figure_is_the_median_of_its_pairs() -> None:
    pairs = [(1.0, 2.0), (9.0, 3.0), (4.0, 4.0)]
    ratio = measure.figure("a", pairs, target=1.0)
    difference = measure.figure("b", pairs, target=-0.5, unit="ms more", runs=30)
    assert (ratio.value, ratio.ours_ms, ratio.theirs_ms, ratio.holds) == (1.0, 4.0, 3.0, True)
    assert (difference.value, difference.holds) == (0.0, False)
    alone = measure.bound("c", 95.4, target=150, unit="MiB")
    assert measure.table([alone]).endswith("\n| c | 95 MiB | 150 MiB | yes | - | - | 1 |")
    assert measure.table([ratio, difference]).splitlines()[2:] == [
        "| a | 1.00 x | 1.00 x | yes | 4.00 | 3.00 | 3 |",
        "| b | +0.00 ms | -0.50 ms | no | 4.00 | 3.00 | 30 |",
    ]
