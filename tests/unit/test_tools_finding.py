"""Files and lines are found alike with ripgrep and without."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from lyma_server.agent.tools import finding
from lyma_server.agent.tools.finding import Match, Wanted, find_files, find_matches
from lyma_server.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

RIPGREP = pytest.param("rg", marks=pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed"))


@pytest.fixture(params=[RIPGREP, "scan"])
def _finder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "scan":
        monkeypatch.setattr(finding, "ripgrep", lambda _root: None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "a.py": b"import os\r\nprint('\xc3\xa4')\n",
        "sub/b.txt": b"nothing\nIMPORT os\n",
        "sub/deep/c.py": b"import sys\n",
        ".github/d.yml": b"on: push\n",
        ".git/config": b"import os\n",
        "binary": b"import os\0\n",
        "odd name:1.py": b"import re\n",
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link.py").symlink_to("a.py")
    return tmp_path


@pytest.mark.usefixtures("_finder")
async def test_lists_all_but_git_and_links(tree: Path) -> None:
    found = await find_files(Wanted(tree, tree))
    assert sorted(found) == [".github/d.yml", "a.py", "binary", "odd name:1.py", "sub/b.txt", "sub/deep/c.py"]


@pytest.mark.usefixtures("_finder")
async def test_globs_narrow(tree: Path) -> None:
    assert sorted(await find_files(Wanted(tree, tree, glob="*.py"))) == ["a.py", "odd name:1.py", "sub/deep/c.py"]
    assert await find_files(Wanted(tree, tree, glob="sub/**/*.py")) == ["sub/deep/c.py"]
    assert await find_files(Wanted(tree, tree, glob="*.rs")) == []


@pytest.mark.usefixtures("_finder")
async def test_finds_lines_in_texts(tree: Path) -> None:
    found = await find_matches(Wanted(tree, tree, pattern="^import (os|re)$"))
    assert found == [Match("a.py", 1, "import os"), Match("odd name:1.py", 1, "import re")]
    assert await find_matches(Wanted(tree, tree, pattern="ä")) == [Match("a.py", 2, "print('ä')")]


@pytest.mark.usefixtures("_finder")
async def test_case_may_be_ignored_and_one_file_named(tree: Path) -> None:
    wanted = Wanted(tree / "sub", tree, "./b.txt", "import", ignore_case=True)
    assert await find_matches(wanted) == [Match("b.txt", 2, "IMPORT os")]


@pytest.mark.usefixtures("_finder")
async def test_a_pattern_that_looks_like_an_option_is_a_pattern(tree: Path) -> None:
    (tree / "o.txt").write_text("--files\n")
    assert await find_matches(Wanted(tree, tree, pattern="--files")) == [Match("o.txt", 1, "--files")]


@pytest.mark.usefixtures("_finder")
async def test_a_bad_pattern_is_an_error_for_the_model(tree: Path) -> None:
    with pytest.raises(ToolError, match=r"The search failed: .*"):
        await find_matches(Wanted(tree, tree, pattern="(unclosed"))


async def test_a_search_that_never_ends_is_ended(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "ripgrep", lambda _root: None)
    monkeypatch.setattr(finding, "TIMEOUT_S", 0.3)
    (tree / "evil.txt").write_text("a" * 60 + "b\n")
    with pytest.raises(ToolError, match="narrow it"):
        await find_matches(Wanted(tree, tree, pattern="(a+)+$"))


def test_a_program_in_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "rg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert finding.ripgrep(tmp_path / "elsewhere") == str(program)
    assert finding.ripgrep(tmp_path) is None
