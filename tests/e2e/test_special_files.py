"""Pipes and devices in a workspace where a file is looked for: whoever reads one waits for ever, and all asks with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.editors.real_server import COMMAND, settings
from tests.raw_client import RawClient
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider, call_tool, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]


def repository(work: Path, special: str, make: Callable[[Path], None]) -> None:
    """What git would take for a repository, but for one of its files."""
    for folder in (".git/objects", ".git/refs"):
        (work / folder).mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (work / ".git" / special).unlink(missing_ok=True)
    make(work / ".git" / special)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def worktree(work: Path, special: str) -> None:
    """A folder that says it is a worktree of the repository `own`, in which one file is a pipe."""
    own = work / "own"
    own.mkdir()
    (work / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(str(work / ".git"))
    (own / special).unlink(missing_ok=True)
    os.mkfifo(own / special)


LAYOUTS = {
    "HEAD is a pipe": lambda work: repository(work, "HEAD", os.mkfifo),
    "the settings are a pipe": lambda work: repository(work, "config", os.mkfifo),
    "the settings have no end": lambda work: repository(work, "config", endless),
    ".git is a pipe": lambda work: os.mkfifo(work / ".git"),
    "the settings of a worktree are a pipe": lambda work: worktree(work, "config"),
    "the way back from a worktree is a pipe": lambda work: worktree(work, "gitdir"),
    "the model's command makes the pipe": lambda _work: None,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_ask_ends_and_others_are_served(tmp_path: Path, layout: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    LAYOUTS[layout](work)
    made = "test -e .git || { mkdir .git && mkfifo .git/config; }; echo ran"
    with (
        StubProvider([call_tool("run_command", {"command": made}), say("done")]) as stub,
        RawClient(COMMAND, env={"HOME": str(tmp_path), **settings(stub, tmp_path / "home")}) as client,
    ):
        client.initialize(workspaceFolders=[{"uri": work.as_uri(), "name": "work"}])
        asked = client.request("lyma/ask", {"prompt": "go"})
        assert client.reply(asked)["result"]["text"] == "done"
        assert "result" in client.call("lyma/status", {})
        assert "exit status 0" in stub.requests[1].raw.decode()
