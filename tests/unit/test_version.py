"""One version, told alike everywhere."""

from __future__ import annotations

import re
from pathlib import Path

from lyma_server import __version__

ROOT = Path(__file__).resolve().parents[2]


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == __version__
