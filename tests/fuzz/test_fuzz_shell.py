"""Shell text of any kind gets its verdict from rules, never from an accident in judging it; what stands before it counts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import judged, rows
from tests.fuzz.mutations import corpus, damaged, effort

ROWS = [row["command"].encode() for row in rows("commands.json") if len(row["command"]) < 200]
SEEDS = (*ROWS[::7], *corpus("shell"))
TOKENS = tuple(
    b"$( |${ |$(( |)) |`|<(|<<E\n|<<<|&&|;;|in|esac|fi|done|{|}|'|\"|\\|$'\\|${!|${x:|${x//|[[ |]]|!|~|*|{a,b}|2>&1|>|\n|\0|\xff|=|#".split(
        b"|"
    )
)
LONGEST_S = 10.0
"""On a machine that has much else to do; a verdict takes milliseconds."""


def check(command: str) -> None:
    began = time.process_time()
    verdict = judged(command)
    assert "judging it failed" not in verdict.reason, verdict
    assert (verdict.verdict == "allow") == (verdict.rule == "")
    assert time.process_time() - began < LONGEST_S


@pytest.mark.parametrize("text", corpus("shell"))
def test_the_corpus(text: bytes) -> None:
    check(text.decode(errors="surrogateescape"))


@effort(120)
@given(text=damaged(SEEDS, TOKENS))
def test_any_text_is_judged(text: bytes) -> None:
    check(text.decode(errors="surrogateescape"))


@effort(60)
@given(text=damaged(SEEDS, TOKENS), line=st.sampled_from(["rm -rf /", "rm -rf ~/", "shutdown -h now"]))
def test_bash_runs_a_line_before_it_reads_the_next(text: bytes, line: str) -> None:
    assert judged(f"{line}\n{text.decode(errors='surrogateescape')}").verdict == "block"
