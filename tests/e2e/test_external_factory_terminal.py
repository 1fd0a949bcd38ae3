"""An external factory at the command line: refused until it is approved, then it drafts and compiles."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lyma_server.compose import build_core
from tests.lyma import environment, run_lyma
from tests.security.world import BWRAPS, LINUX

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

REFERENCE = Path(__file__).parents[1] / "external_factory"


def approve(hash_, workspace, env):
    factory = build_core({**os.environ, **env}).factory
    bundle = factory.store.load(hash_)
    asked = factory.gate.ask(bundle, workspace, b"shown", "terminal")
    factory.gate.answer(asked, hash_, asked.nonce, approved=True)


def test_draft_and_compile(tmp_path):
    workspace = tmp_path / "app"
    workspace.mkdir()
    shutil.copytree(REFERENCE, tmp_path / "tree", ignore=shutil.ignore_patterns("__pycache__"))
    env = environment(
        LYMA_FACTORY__MODE="external",
        LYMA_FACTORY__COMMAND="python3,-I,main.py",
        LYMA_FACTORY__TREE=str(tmp_path / "tree"),
        LYMA_PROVIDERS__LOCAL__BASE_URL="http://127.0.0.1:1/v1",
        LYMA_ORDER="local",
    )

    def lyma(*words):
        return run_lyma(*words, env=env, cwd=workspace)

    refused = lyma("draft-agent", "--name", "mine", "Counts words")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "The external factory cannot be asked: nobody has approved sha256:" in refused.stderr
    hash_ = next(word for word in refused.stderr.split() if word.startswith("sha256:"))
    approve(hash_, workspace, env)
    drafted = lyma("draft-agent", "--name", "mine", "Counts words")
    assert (drafted.returncode, drafted.stderr) == (0, "")
    assert Path(drafted.stdout.strip()) == workspace / ".lyma" / "agents" / "mine" / "agent.toml"
    compiled = lyma("compile-agent", "mine")
    assert (compiled.returncode, compiled.stderr) == (0, "")
    listed = lyma("agents").stdout
    assert "mine" in listed
    assert "external-factory" in listed
    assert compiled.stdout.strip()[:18] in listed
