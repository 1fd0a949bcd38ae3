"""What the documents name is there: files and folders in backticks, and the targets of links."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lyma_server.terminal.commands import BY_NAME

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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_it_has_typed_is_there(document):
    """The commands and targets in its blocks, and those in backticks that no test runs."""
    text = document.read_text(encoding="utf-8")
    typed = [*re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL), *re.findall(r"`([^`\n]+)`", text)]
    commands = {name for each in typed for name in re.findall(r"(?:^|\| )lyma ([a-z][\w-]*)", each, re.MULTILINE)}
    targets = {name for each in typed for name in re.findall(r"^make ([a-z][\w-]*)", each, re.MULTILINE)}
    assert commands - BY_NAME.keys() == set()
    assert (
        targets - set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        == set()
    )


def test_the_recipes_for_emacs_are_those_that_its_tests_follow():
    """But for the folder, which is where the reader has it."""
    page = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
    begin, eglot = re.findall(r"^```elisp\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    followed = (ROOT / "tests/editors/emacs_check.el").read_text(encoding="utf-8")
    assert begin.splitlines()[0] == """(add-to-list 'load-path "~/lyma/clients/emacs")"""
    assert begin.splitlines()[1] in followed.splitlines()
    assert eglot.splitlines()[0] == "(with-eval-after-load 'eglot"
    assert eglot.splitlines()[1].strip().removesuffix(")") in map(str.strip, followed.splitlines())


def test_the_recipe_for_helix_can_be_read():
    page = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    languages = tomllib.loads(recipe)
    assert languages["language-server"]["lyma"] == {"command": "lyma-server"}
    assert "lyma" in languages["language"][0]["language-servers"]
