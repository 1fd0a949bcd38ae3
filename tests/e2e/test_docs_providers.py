"""docs/providers.md and what the README says of keys: every command runs, in the order of the page; each configuration is valid."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from tests.lyma import environment, run_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.stub_provider import StubProvider, say

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/providers.md", "docs/agents.md")
}


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGES[page], re.DOTALL)


def lines(page: str) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines()]


@pytest.fixture
def stub():
    with StubProvider([say("Hello.")]) as stub:
        yield stub


@pytest.fixture
def env(stub, tmp_path, monkeypatch):
    """Programs as the pages name them: `lyma`, and a password manager that knows one key."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (
        ("lyma", f'exec {sys.executable} -m lyma_server "$@"'),
        ("pass", "echo sk-ant-from-the-manager"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return environment(
        ANTHROPIC_BASE_URL=stub.anthropic_url, OPENAI_BASE_URL=stub.openai_url, WORK_KEY="sk-of-work-1234"
    )


def type_key(command: str, env: dict[str, str]) -> None:
    """`lyma setup` and `lyma keys add PROVIDER`, by a person."""
    with PseudoTerminal(*shlex.split(command, comments=True)[1:], env=env) as terminal:
        if "setup" in command:
            terminal.expect("Number or name: ")
            terminal.type("anthropic")
        terminal.expect("not shown")
        terminal.type(f"sk-ant-api03-typed-for-{command.split()[1]}-0123456789")
        assert terminal.leave() == 0, terminal.shown


def test_every_command_of_the_page(env, stub, tmp_path):
    for line in lines("docs/providers.md"):
        command = line.replace("http://127.0.0.1:8080/v1", stub.openai_url)
        if command.startswith(("lyma setup", "lyma keys add")):
            type_key(command, env)
            continue
        done = subprocess.run(
            ["bash", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 or "doctor" in command, (line, done.stderr)
    listed = run_lyma("keys", "list", env=env).stdout
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [
        ["anthropic", "1"],
        ["anthropic", "2"],
        ["openai", "1"],
    ]
    assert "cmd:" in listed
    assert stub.requests[-1].path.endswith("/chat/completions")
    assert len(lines("docs/providers.md")) > 12


def test_every_command_of_the_readme_for_real_work(env, tmp_path):
    """The commands below `make`: the tutorial's test runs those, and editors' tests the others."""
    project = tmp_path / "your/project"
    (project / "src").mkdir(parents=True)
    (project / "src/app.py").write_text("import os\n" * 50)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    [block] = [each for each in blocks("README.md", "sh") if "lyma setup" in each]
    asked = [line for line in block.splitlines() if "lyma ask" in line]
    assert len(asked) == 2
    type_key("lyma setup", env)
    for line in asked:
        done = subprocess.run(["bash", "-c", line], env=env, cwd=project, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "Hello.\n"), (line, done.stderr)


@pytest.mark.parametrize("page", ["README.md", "docs/providers.md", "docs/agents.md"])
def test_the_configuration_is_valid(page, tmp_path):
    [block] = blocks(page, "toml")
    home = Home(tmp_path)
    gpu = '[providers.gpu]\nbase_url = "http://127.0.0.1:8080/v1"\n' if "[providers" not in block else ""
    home.config.write_text(gpu + block)
    home.config.chmod(0o600)
    loaded = load_settings({"HOME": str(tmp_path)}, home)
    assert loaded.notices == ()
    assert {source.kind for source in loaded.sources.values()} >= {"file"}
