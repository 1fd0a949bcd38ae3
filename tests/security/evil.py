"""Starts evil agents: as root and as a plain user, with the whole sandbox or with single defences taken away."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import attr
import attrs
import pytest

from tests.security.world import LINUX, PATH, PLAIN_BWRAPS, PLAINLY, PYTHON, WHO

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("evil_inside.py", "evil_run.py", "killed_run.py", "weaker.py")
CANARY = "canary-in-the-environment"

SANDBOXED = [
    LINUX,
    pytest.mark.skipif(not PLAIN_BWRAPS, reason="this kernel or container gives a plain user no namespaces"),
]
who = pytest.mark.parametrize("who", WHO)


@cache
def packages() -> Path:
    """A copy of what evil agents are started with that a plain user may read."""
    folder = Path(tempfile.mkdtemp(prefix="lyma-evil-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, folder)
    for package in (ROOT / "lyma_server", *(Path(module.__file__ or "").parent for module in (attr, attrs))):
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    tests = folder / "tests" / "security"
    tests.mkdir(parents=True)
    for part in PARTS:
        shutil.copy(ROOT / "tests/security" / part, tests)
    for place in (folder / "tests/__init__.py", tests / "__init__.py"):
        place.touch()
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    return folder


def plainly(who: str) -> list[str]:
    """The words before a program of this user's."""
    return PLAINLY if who == "plain" and os.geteuid() == 0 else []


def surroundings() -> dict[str, str]:
    return {"PATH": PATH, "PYTHONPATH": str(packages()), "EVIL_CANARY": CANARY, "PYTHONDONTWRITEBYTECODE": "1"}


def order(*deeds: str, weak: tuple[str, ...] = (), **more: Any) -> str:
    """What an evil agent is to do, and which defences are taken away."""
    return json.dumps({"deeds": deeds, "weak": weak, "bwrap": str(PLAIN_BWRAPS[0]) if PLAIN_BWRAPS else "", **more})


def attack(who: str, wanted: str, orders: tuple[str, ...] = ()) -> dict[str, Any]:
    """What came of it. All `orders` are carried out by one program, and each once only, since to start that takes long."""
    outcome = _attacks(who, orders if wanted in orders else (wanted,))[wanted]
    assert "error" not in outcome, outcome["error"]
    return outcome


@cache
def _attacks(who: str, orders: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [*plainly(who), PYTHON, "-m", "tests.security.evil_run", f"[{','.join(orders)}]"],
        env=surroundings(), cwd="/", capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(orders, json.loads(done.stdout), strict=True))


def untouched(outcome: dict[str, Any]) -> None:
    """The host is as it was, and nothing of the agent is left."""
    assert outcome["arrived"] == []
    assert outcome["victim"]
    assert outcome["files"] == ["file", "in", "secret", "socket"]
    assert outcome["staged"] == "staged"
    assert outcome["left"] == 0
    assert outcome["descriptors"] == []
