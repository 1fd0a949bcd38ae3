"""Agents in a terminal, with a scripted model and the real sandbox: drafted, compiled, approved, run, and the patch applied."""

from __future__ import annotations

import json
import os

import pytest

from tests.agent_script import NAME, SPEC, script
from tests.lyma import environment, run_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider, say

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

PROMPT = "To approve type the last 6 digits of its hash"


class House:
    def __init__(self, folder, stub) -> None:
        self.root = folder / "app"
        self.spec = self.root / ".lyma" / "agents" / NAME / "agent.toml"
        self.spec.parent.mkdir(parents=True)
        self.spec.write_text(SPEC)
        self.changelog = self.root / "CHANGELOG.md"
        self.changelog.write_text("old\n")
        url = {"LYMA_PROVIDERS__LOCAL__BASE_URL": stub.openai_url, "LYMA_PROVIDERS__LOCAL__MODEL": "m"}
        self.env = environment(LYMA_ORDER="local", **url)

    def lyma(self, *arguments, **options):
        return run_lyma(*arguments, cwd=self.root, env=self.env, **options)

    def terminal(self, *arguments):
        return PseudoTerminal(*arguments, env=self.env, cwd=self.root)

    def compiled(self) -> str:
        return self.lyma("compile-agent", NAME).stdout.strip()

    def approve(self, hash_) -> None:
        with self.terminal("approve", hash_) as terminal:
            terminal.expect(PROMPT)
            terminal.type(hash_[-6:])
            assert terminal.leave() == 0


@pytest.fixture
def stub():
    with StubProvider(script) as stub:
        yield stub


@pytest.fixture
def house(tmp_path, stub):
    return House(tmp_path, stub)


def test_compiling_names_the_approval_only_while_it_is_missing(house):
    """At a terminal; the hash alone goes to a pipe."""
    with house.terminal("compile-agent", NAME) as terminal:
        terminal.expect("To let it run in this folder: lyma approve sha256:")
        assert terminal.leave() == 0
    house.approve(house.compiled())
    with house.terminal("compile-agent", NAME) as terminal:
        assert terminal.leave() == 0
        assert "sha256:" in terminal.shown
        assert "lyma approve" not in terminal.shown


def test_by_its_person(house, stub):
    """Refused without a person; asked for at a terminal; its patch shown and made after a yes; undone; one byte more refused."""
    hash_ = house.compiled()
    refused = house.lyma("run_compiled_agent", hash_, "--apply", stdin="")
    assert (refused.returncode, refused.stdout, stub.requests) == (3, "", [])
    assert f"lyma approve {hash_[:19]}" in refused.stderr
    with house.terminal("run-compiled-agent", hash_[:16], "--input", "commits") as terminal:
        terminal.expect("  | Read the café's commits.")
        terminal.expect(PROMPT)
        terminal.type(hash_[-6:])
        terminal.expect("+new")
        terminal.expect("Make these changes?\r\n[yes/no] ")
        assert house.changelog.read_text() == "old\n"
        terminal.type("yes")
        terminal.expect("One line was added.")
        assert terminal.leave() == 0
    assert house.changelog.read_text() == "old\nnew\n"
    assert house.lyma("undo").returncode == 0
    assert house.changelog.read_text() == "old\n"
    house.spec.write_text(SPEC.replace("Read the", "Reed the"))
    other = house.compiled()
    assert other != hash_
    assert house.lyma("run-compiled-agent", other).returncode == 3


def test_by_a_script(house):
    hash_ = house.compiled()
    house.approve(hash_)
    left = house.lyma("run-compiled-agent", hash_, "--input", "-", stdin="commits")
    assert (left.returncode, left.stdout) == (0, "One line was added.\n")
    assert house.changelog.read_text() == "old\n"
    patch = left.stderr.split("All its changes are in ")[1].split()[0].rstrip(".")
    assert patch.endswith("patch.diff")
    with open(patch, encoding="utf-8") as file:
        assert "+new" in file.read()
    assert f"{NAME}: ok" in left.stderr
    done = house.lyma("run-compiled-agent", hash_, "--input", '{"n": 1}', "--apply", "--json")
    result = json.loads(done.stdout)
    assert (result["status"], result["output"]) == ("ok", {"text": "One line was added."})
    assert (result["applied"], result["left"]) == (["CHANGELOG.md"], {})
    assert house.changelog.read_text() == "old\nnew\n"
    gone_on = house.lyma("ask", "--continue", "explain")
    assert gone_on.returncode == 0, gone_on.stderr


def test_an_interrupt_at_the_question_withdraws_it(house, stub):
    hash_ = house.compiled()
    with house.terminal("run-compiled-agent", hash_) as terminal:
        terminal.expect(PROMPT)
        terminal.interrupt()
        assert terminal.leave() == 130
    rows = [json.loads(line) for line in house.lyma("agents", "--json").stdout.splitlines()]
    assert [row["here"] for row in rows] == ["waiting"]
    assert stub.requests == []


def test_by_the_model_in_an_ask(house, stub):
    os.unlink(house.spec)
    house.spec.parent.rmdir()
    with house.terminal("ask", "keep the changelog") as terminal:
        terminal.expect("Write a line for each.")
        terminal.expect(PROMPT)
        hash_ = house.compiled()
        terminal.type("yes")
        terminal.expect(PROMPT)
        terminal.type(hash_[-6:])
        terminal.expect("All done.")
        assert terminal.leave() == 0
    assert house.changelog.read_text() == "old\nnew\n"
    assert "One line was added." in stub.requests[-1].raw.decode()


def test_without_a_terminal_the_model_is_told_that_only_a_person_approves(house, stub):
    done = house.lyma("ask", "keep the changelog")
    assert done.returncode == 0
    assert house.changelog.read_text() == "old\n"
    last = stub.requests[-1].body["messages"][-1]["content"]
    assert "approval_unavailable: " in last
    assert "no tool does" in last


def test_an_output_that_would_paint_the_terminal_is_shown_plain(tmp_path):
    with StubProvider([say("\x1b[2Jgone")]) as stub:
        house = House(tmp_path, stub)
        hash_ = house.compiled()
        house.approve(hash_)
        with house.terminal("run-compiled-agent", hash_) as terminal:
            terminal.expect("␛[2Jgone")
            assert terminal.leave() == 0
