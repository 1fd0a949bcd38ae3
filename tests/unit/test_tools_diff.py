"""Diffs say what changed, also of files too large to be compared line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.agent import diff
from lyma_server.agent.diff import counts, unified
from lyma_server.agent.lines import split_lines


def patched(before: str, shown: str) -> str:
    """`before` with a unified diff applied."""
    lines, done, place = split_lines(before), [], 0
    rows = shown.split("\n")[2:-1]
    for number, row in enumerate(rows):
        bare = number + 1 < len(rows) and rows[number + 1].startswith("\\")
        text = row[1:] + ("" if bare else "\n")
        if row.startswith("@@"):
            start, _, size = row.split(" ")[1][1:].partition(",")
            upto = int(start) - (size != "0")
            done, place = [*done, *lines[place:upto]], upto
        elif row.startswith("+"):
            done.append(text)
        elif row[:1] in {"-", " "}:
            assert lines[place] == text
            done += [text] if row[0] == " " else []
            place += 1
    return "".join([*done, *lines[place:]])


texts = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map("\n".join)


@pytest.mark.parametrize("many", [0, 5000])
@given(before=texts, after=texts)
def test_a_diff_makes_the_one_of_the_other(many: int, before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "MANY_LINES", many)
        shown = unified("x", before, after)
    assert patched(before, shown) == after if shown else before == after
    added, removed = counts(shown)
    assert added - removed == len(split_lines(after)) - len(split_lines(before))


def test_new_and_deleted_files() -> None:
    assert unified("x", None, "a\n") == "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    assert unified("x", "a\n", None) == "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert counts(unified("x", None, "a\nb")) == (2, 0)
