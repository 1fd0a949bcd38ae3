"""Emacs with nothing but the recipe: eglot and lsp-mode each ask, stop, edit and approve."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.asking_server import HASH, LINES
from tests.editors.neovim import surroundings
from tests.editors.project import Project, told
from tests.editors.real_server import last_words, settings
from tests.raw_client import ROOT
from tests.security.world import BWRAPS
from tests.stub_provider import Reply, Request, StubProvider, call_tool, say

LYMA = ROOT / "clients" / "emacs"
PACKAGES = Path("/usr/share/emacs/site-lisp/elpa")
ASKING = (sys.executable, "-m", "tests.editors.asking_server")

needs_sandbox = pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
pytestmark = pytest.mark.skipif(
    shutil.which("emacs") is None or not list(PACKAGES.glob("eglot-*")) or not list(PACKAGES.glob("lsp-mode-*")),
    reason="Emacs with eglot and lsp-mode is not installed",
)


def answer(request: Request) -> Reply:
    if "edit it" not in last_words(request):
        return Reply(text=("Hello", " from", " the stub", *(f" {word}" for word in range(900))), pause_s=0.02)
    if request.body["messages"][-1]["role"] == "tool":
        return say("all is edited")
    return call_tool("edit_file", {"path": "a b.py", "edits": [{"old_text": "two", "new_text": "2 😀"}]})


def run(folder: Path, client: str, variables: dict[str, str], **more: Any) -> dict[str, Any]:
    root = folder / "root"
    (root / ".git").mkdir(parents=True, exist_ok=True)
    (root / "a b.py").write_text("one\ntwo\n")
    env = {**surroundings(folder, variables, **more), "CLIENT_FOLDER": str(LYMA), "LC_ALL": "C.UTF-8"}
    words = ["emacs", "--batch", "-l", str(Path(__file__).with_name("emacs_check.el")), client, root / "a b.py"]
    ended = subprocess.run(words, cwd=root, env=env, capture_output=True, timeout=90, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout.decode().splitlines()[-1])


@pytest.mark.parametrize("client", ["eglot", "lsp-mode"])
def test_it_asks_streams_stops_and_edits(tmp_path: Path, client: str) -> None:
    with StubProvider(answer) as stub:
        found = run(tmp_path, client, settings(stub, tmp_path / "home"))
        sent = str(stub.requests[0].body["messages"])
    assert found["running"] == 1
    assert found["still_running"] == 1
    assert "M-x eglot" in found["elsewhere"]
    assert found["heading_elsewhere"] is None
    assert found["mode"] in {"markdown-mode", "text-mode"}, "the transcript is another's buffer"
    assert found["idle"] == 0
    assert found["stopped_s"] < 2
    assert "<selection" in sent
    assert "unsaved = 1" in sent
    assert found["edited"] == "unsaved = 1\none\n2 😀\n"
    assert found["undone"] == "unsaved = 1\none\ntwo\n"
    assert (tmp_path / "root" / "a b.py").read_text() == "one\ntwo\n"
    assert "Hello from the stub" in found["transcript"]
    assert "▸ edit_file" in found["transcript"]


@pytest.mark.parametrize("client", ["eglot", "lsp-mode"])
def test_it_approves_rejects_and_leaves_unanswered(tmp_path: Path, client: str) -> None:
    found = run(tmp_path, client, {"ONLY_APPROVALS": "1"}, command=ASKING)
    assert HASH in found["title"]
    assert LINES[-1] in found["manifest"]
    lines = [line for line in found["transcript"].splitlines() if line.startswith("[")]
    answers = [json.loads(line)[0] for line in lines]
    assert [each and each["approved"] for each in answers] == [None, False, True]
    assert answers[2] == {"hash": HASH, "nonce": "nonce-1", "approved": True}


@needs_sandbox
@pytest.mark.parametrize("client", ["eglot", "lsp-mode"])
def test_only_what_is_approved_runs(tmp_path: Path, client: str) -> None:
    project = Project(tmp_path / "root")
    with StubProvider(project.answer) as stub:
        variables = settings(stub, tmp_path / "home")
        hash_ = project.compile(variables)
        found = run(tmp_path, client, {**variables, "ONLY_APPROVALS": "1"})
        results = [text for request in stub.requests if (text := told(request))]
    assert hash_ in found["title"]
    assert hash_ in found["manifest"]
    assert ["three files" in text for text in results] == [False, False, True]
    assert f"▸ approved {hash_}" in found["transcript"]


def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    shutil.copy(LYMA / "lyma.el", tmp_path)
    words = [
        "emacs",
        "-Q",
        "--batch",
        "--eval",
        "(setq byte-compile-error-on-warn t)",
        "-f",
        "batch-byte-compile",
        "lyma.el",
    ]
    made = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
