"""The pictures in the README are of what Neovim shows today."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from tests.editors.pictures import PICTURES
from tests.raw_client import ROOT


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def words(svg: str) -> str:
    """What is written in a picture."""
    return re.sub(r"\s+", " ", " ".join(texts(svg)))


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_hangs_on_spaces_that_a_browser_leaves_out(name: str) -> None:
    kept = texts((ROOT / "docs" / "pictures" / f"{name}.svg").read_text())
    assert len(kept) > 30
    assert [text for text in kept if text != text.strip() or "  " in text] == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("neovim-ask", ["why does put() raise", "rate_limit (429), rotate", "edited", "same priority", "done"]),
        ("neovim-approval", ["Approve the agent todo-triage", "changes no file", "2: Reject", "3: Approve sha256:"]),
    ],
)
def test_they_can_be_made_and_show_it(name: str, shown: list[str]) -> None:
    kept = words((ROOT / "docs" / "pictures" / f"{name}.svg").read_text())
    made = words(PICTURES[name]())
    for text in shown:
        assert text in made
        assert text in kept
