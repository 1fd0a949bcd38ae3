"""Columns for people."""

from __future__ import annotations

from lyma_server.terminal.table import table

ROWS = [("one", "a title that is long"), ("three", "b")]


def test_columns_stand_below_one_another() -> None:
    assert table(("name", "title"), ROWS) == "name   title\none    a title that is long\nthree  b\n"


def test_no_line_is_wider_than_the_terminal() -> None:
    assert table(("name", "title"), ROWS, 12) == "name   title\none    a ti…\nthree  b\n"
