"""The VS Code client as a package, made once a test run with npm."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.raw_client import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = ROOT / "clients" / "vscode"
NPM_S = 300
NODE = 20


def has_node() -> bool:
    """Whether there is a Node that the tools of the client run on."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    return int(shown.strip().lstrip("v").split(".")[0] or 0) >= NODE


def npm(*words: str) -> str:
    """Run npm in the client's folder; what it prints."""
    if not has_node():
        pytest.skip("Node 20 or newer with npm is not installed")
    person = {"HOME": pwd.getpwuid(os.getuid()).pw_dir}  # whose npm and pip are configured; no test of Lyma runs in it
    environment = {**os.environ, **person, "PYTHON": sys.executable}
    done = subprocess.run(
        ["npm", *words], cwd=CLIENT, env=environment, capture_output=True, text=True, timeout=NPM_S, check=False
    )
    assert done.returncode == 0, f"npm {' '.join(words)}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def install() -> None:
    """`npm ci`, unless the lock file's packages are there already."""
    lock, marker = CLIENT / "package-lock.json", CLIENT / "node_modules" / ".package-lock.json"
    if not marker.is_file() or marker.stat().st_mtime < lock.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund")


def package() -> Path:
    """The .vsix, made from the sources as they are now."""
    install()
    npm("run", "package")
    return CLIENT / "lyma.vsix"
