"""What the documents name is there: files and folders in backticks, and the targets of links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACES = ("lyma_server/", "tests/", "bench/", "docs/", "examples/", "clients/", "requirements/")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_path_of_the_project_is_there(document):
    text = re.sub(
        r"^Write `[^`]+`:$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE
    )  # what a reader makes
    named = re.findall(r"`([\w./*-]+)`", text)
    ours = [name for name in named if name.startswith(PLACES)]
    assert [name for name in ours if not list(ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_link_leads_somewhere(document):
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_the_documents_do_name_files():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert len(re.findall(r"`(?:lyma_server|tests)/[\w./]+`", text)) > 8
