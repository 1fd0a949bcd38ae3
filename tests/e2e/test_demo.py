"""The tour goes the same way each time: without a person to the refusal, with one through the sandbox."""

from __future__ import annotations

import re

import pytest

from lyma_server.isolation import probe
from lyma_server.terminal.demo import STEPS
from lyma_server.terminal.demo_script import FOUND
from tests.lyma import run_lyma
from tests.pseudo_terminal import PseudoTerminal

pytestmark = pytest.mark.skipif(not probe.find_bwraps(), reason="this kernel or container lets bubblewrap do nothing")
PROMPT = 'To approve type the last 6 digits of its hash, to refuse "reject": '


def test_without_a_person_it_shows_the_refusal_and_goes_on(tmp_path):
    done = run_lyma("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [f"[{number}/{len(STEPS)}]" in done.stdout for number in range(1, len(STEPS) + 1)] == [True] * len(STEPS)
    for told in ("rate limit (429), trying its next key", "server error (503), trying the next provider"):
        assert told in done.stderr
    assert done.stderr.count("(fs-wipe)") == 2
    assert "refused as it was to be executed" in done.stderr
    assert "is not approved: that takes a person at a terminal" in done.stderr
    assert FOUND not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_with_a_person_the_agent_runs(lyma_env, tmp_path):
    with PseudoTerminal("demo", env=lyma_env, cwd=tmp_path) as terminal:
        terminal.expect(PROMPT, timeout_s=60)
        [digits] = set(re.findall(r"sha256:[0-9a-f]{58}([0-9a-f]{6})", terminal.shown))
        terminal.type(digits)
        terminal.expect("Approved for ")
        terminal.expect("take the name from the arguments", timeout_s=60)
        assert terminal.leave() == 0


def test_a_person_who_refuses_is_not_asked_again(lyma_env, tmp_path):
    with PseudoTerminal("demo", env=lyma_env, cwd=tmp_path) as terminal:
        terminal.expect(PROMPT, timeout_s=60)
        terminal.type("reject")
        terminal.expect("You did not approve it, so it does not run.")
        terminal.expect("That was the tour")
        assert terminal.shown.count(PROMPT) == 1
        assert terminal.leave() == 0


def test_the_users_keys_take_no_part(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-used-0123456789")
    monkeypatch.setenv("LYMA_ORDER", "openai")
    done = run_lyma("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "openai" not in done.stderr
