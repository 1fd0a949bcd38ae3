"""The oldest versions that pyproject.toml allows are those of requirements/floors.txt, with which `make floors` runs the tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [Requirement(line) for line in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["embedded"])]


def pins(name: str) -> dict[str, Version]:
    """Of a lock file: each package with its version."""
    found = re.findall(
        r"^([\w.-]+)(?:\[\w+\])?==([^ ]+)", (ROOT / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE
    )
    return {package.replace("_", "-"): Version(version) for package, version in found}


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: needed.name)
def test_the_floor_is_what_the_tests_run_with(needed):
    [floor] = [each.version for each in needed.specifier if each.operator in (">=", "==")]
    name = needed.name.replace("_", "-")
    tried, locked = pins("floors.txt")[name], pins("runtime.txt")[name]
    assert tried.release[: len(Version(floor).release)] == Version(floor).release
    assert tried <= locked
    assert needed.specifier.contains(tried)
