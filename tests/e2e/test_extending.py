"""docs/extending.md is followed to the letter in a copy of the project: its files, its rows, its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("lyma_server", "tests", "docs", "examples", "pyproject.toml", "protocol.md", "README.md", "CHANGELOG.md")
PARTS = re.split(r"^## ", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
STEP = re.compile(r"^(?:Write `(?P<new>[^`]+)`:|In `(?P<old>[^`]+)`, below `(?P<anchor>[^`]+)`, add [^\n]*:)$|^```(?P<kind>\w+)\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)  # fmt: skip


def follow(part: str, copy: Path) -> list[str]:
    """Do what a part says; the shell texts that are to pass."""
    place, texts = None, []
    for step in STEP.finditer(part):
        if step["kind"] is None:
            place = step
        elif step["kind"] == "sh":
            texts.append(step["block"])
        elif place["new"]:
            path = copy / place["new"]
            assert not path.exists(), path
            path.write_text(step["block"], encoding="utf-8")
        else:
            add_below(copy / place["old"], place["anchor"], step["block"])
    return texts


def add_below(path: Path, anchor: str, block: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    [at] = [
        number for number, line in enumerate(lines) if (line.strip() == anchor if anchor == "[" else anchor in line)
    ]
    path.write_text("".join([*lines[: at + 1], block, *lines[at + 1 :]]), encoding="utf-8")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.partition("\n")[0])
def test_a_part_holds(part, tmp_path):
    for name in COPIED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, tmp_path / name)
    [text] = follow(part, tmp_path)
    folder = Path(sys.executable).parent
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", text], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_part_writes_adds_and_shows():
    assert len(PARTS) == 4
    for part in PARTS:
        steps = list(STEP.finditer(part))
        assert sum(bool(step["anchor"]) for step in steps) >= 1
        assert sum(step["kind"] == "sh" for step in steps) == 1
