"""docs/agents.md is true: its commands do what it says, in order, with a scripted model and a person at a terminal."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.agents import document, text_of
from tests.lyma import environment, run_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider, say

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]
DRAFT = text_of(document(name="triage", tools__python=[], output__schema="")).decode()


def answer(request):
    if "You write the specification" in request.raw.decode():
        return say(f"```toml\n{DRAFT}```")
    return say("Nothing is urgent.")


def test_every_command_of_the_page(tmp_path):
    assert len(COMMANDS) >= 9
    root = tmp_path / "app"
    root.mkdir()
    hash_ = "HASH"
    with StubProvider(answer) as stub:
        url = {"LYMA_PROVIDERS__LOCAL__BASE_URL": stub.openai_url, "LYMA_PROVIDERS__LOCAL__MODEL": "m"}
        env = environment(LYMA_ORDER="local", **url)
        for program, *written in COMMANDS:
            assert program == "lyma"
            words = [hash_ if word == "HASH" else word for word in written]
            if words == ["approve", hash_]:
                with PseudoTerminal(*words, env=env, cwd=root) as terminal:
                    terminal.expect("type the last 6 digits")
                    terminal.type(hash_[-6:])
                    assert terminal.leave() == 0, terminal.shown
                continue
            done = run_lyma(*words, cwd=root, env=env)
            assert done.returncode == 0, (words, done.stderr)
            if words[0] == "compile-agent":
                hash_ = done.stdout.strip()
            if words[0] == "run-compiled-agent":
                assert "Nothing is urgent." in done.stdout
