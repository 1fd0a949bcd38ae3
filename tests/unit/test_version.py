"""One version, told alike everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from lyma_server import __version__

ROOT = Path(__file__).resolve().parents[2]


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == __version__


def test_the_clients_name_this_version() -> None:
    emacs = (ROOT / "clients/emacs/lyma.el").read_text(encoding="utf-8")
    assert re.findall(r"^;; Version: (.+)$", emacs, re.MULTILINE) == [__version__]
    manifest, lock = (
        json.loads((ROOT / "clients/vscode" / name).read_text(encoding="utf-8"))
        for name in ("package.json", "package-lock.json")
    )
    assert [manifest["version"], lock["version"], lock["packages"][""]["version"]] == [__version__] * 3
