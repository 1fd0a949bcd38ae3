"""docs/tutorial.md is followed by a person at a shell: every command in its order, and what the page says is seen.

The shell, the embedded model, the sandbox and the terminal are real; the two real providers are stubs on loopback, and the
environment that `make demo` would fetch is this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.agents import document, text_of
from tests.lyma import environment
from tests.pseudo_terminal import PseudoTerminal
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider, call_tool, say

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"^Write `(?P<file>[^`]+)`:$|^```(?P<kind>\w+)\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

KEY = "sk-ant-api03-typed-by-a-person-0123456789"
SHELL = ("bash", "--norc", "--noprofile", "--noediting", "-i")
MENDED = {"old_text": "len(number)", "new_text": "len(numbers)"}
PROMPT = re.compile(r"\[(\d+) is the status\] ")
QUESTION = 'To approve type the last 6 digits of its hash, to refuse "reject": '
DRAFT = text_of(
    document(name="todos", tools__python=[], tools__allow=["fs.grep"], files__read=["*.py"], files__write=[], output__schema="")
).decode()  # fmt: skip


def model(request):
    """The provider of the reader: it runs the file and mends it, drafts the agent, and is the agent."""
    text = request.raw.decode()
    results = text.count('"tool_result"')
    if "You write the specification" in text:
        return say(f"```toml\n{DRAFT}```")
    if "You are todos" in text:
        return say("mean.py:1, about no numbers.") if results else call_tool("fs-grep", {"pattern": "TODO"})
    if "Run mean.py" not in text:
        return say("At reading and mending code.")
    steps = [
        call_tool("run_command", {"command": f"{sys.executable} mean.py"}),
        call_tool("edit_file", {"path": "mean.py", "edits": [MENDED]}),
        say("A name was misspelt."),
    ]
    return steps[min(results, 2)]


class Reader:
    """Types commands into a shell. `seen` is what the last block of commands showed."""

    def __init__(self, terminal: PseudoTerminal) -> None:
        self.terminal = terminal
        self.seen = ""
        self.wait()
        terminal.type("stty -onlcr")
        self.wait()

    def wait(self, timeout_s: float = 120) -> int:
        """For the shell; the exit code of the command before."""
        self.terminal.expect(" is the status] ", timeout_s=timeout_s)
        shown = self.terminal.shown
        return int(re.findall(PROMPT, shown)[-1])

    def follow(self, block: str) -> None:
        """Each command of `block`; those that ask are answered."""
        start = len(self.terminal.shown)
        for command in block.splitlines():
            self.terminal.type(command)
            self.answer(command)
            assert self.wait() == 0, self.terminal.shown[start:]
        self.seen = self.terminal.shown[start:]

    def answer(self, command: str) -> None:
        """What a person types after `command`."""
        if command == "make demo":
            self.approve(timeout_s=120)
        elif command == "lyma setup":
            self.terminal.expect("Number or name: ")
            self.terminal.type("anthropic")
            self.terminal.expect("not shown: ")
            self.terminal.type(KEY)
        elif command.startswith("lyma keys add"):
            self.terminal.expect("(not shown): ")
            self.terminal.type("sk-another-key-0123456789")
        elif command == "lyma approve":
            self.approve()

    def approve(self, timeout_s: float = 20) -> None:
        """Type what the question asks for."""
        start = len(self.terminal.shown)
        self.terminal.expect(QUESTION, timeout_s=timeout_s)
        [hash_] = set(re.findall(r"sha256:[0-9a-f]{64}", self.terminal.shown[start:]))
        self.terminal.type(hash_[-6:])

    def check(self, text: str) -> None:
        """That each line of `text` was shown, in this order; the dots stand for anything within a line."""
        for line in text.splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            found = re.search(pattern, self.seen)
            assert found, f"{line!r} was not shown: {self.seen}"
            self.seen = self.seen[found.end() :]


def publish(place: Path) -> Path:
    """A repository with the Makefile, and with the environment that it would make."""
    programs = place / "environment/bin"
    programs.mkdir(parents=True)
    lyma = programs / "lyma"
    lyma.write_text(f'#!/bin/sh\nexec {sys.executable} -m lyma_server "$@"\n')
    lyma.chmod(0o755)
    for made in (".created", ".runtime"):
        (programs.parent / made).touch()
        os.utime(programs.parent / made, (time.time() + 9999,) * 2)  # newer than what is cloned
    origin = place / "origin"
    (origin / "requirements").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements/runtime.txt"):
        shutil.copy2(ROOT / name, origin / name)
    (origin / ".venv").symlink_to(programs.parent)
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=origin, check=True)
    return origin


@pytest.mark.full
@pytest.mark.usefixtures("smollm_model")
def test_the_page_is_followed_to_its_end(tmp_path):
    page = PAGE.replace("URL lyma", f"{publish(tmp_path)} lyma")
    with StubProvider(model) as first, StubProvider([say("Not asked.")]) as second:
        env = environment(
            ANTHROPIC_BASE_URL=first.anthropic_url, OPENAI_BASE_URL=second.openai_url, PS1="[$? is the status] "
        )
        with PseudoTerminal(command=SHELL, env=env, cwd=tmp_path) as terminal:
            reader = Reader(terminal)
            for step in STEP.finditer(page):
                if step["kind"] == "sh":
                    reader.follow(step["block"])
                elif step["kind"] == "text":
                    reader.check(step["block"])
                elif step["kind"] is None:
                    written = Path(env["HOME"]) / "lyma-tutorial" / step["file"]
                else:
                    written.write_text(step["block"], encoding="utf-8")
            terminal.type("exit")
            assert terminal.leave() == 0
    assert written.read_text(encoding="utf-8").count("len(number)") == 1  # undone
    assert first.requests[-1].key == KEY
    assert KEY not in terminal.shown
    assert "no numbers" in terminal.shown


def test_the_page_has_every_step():
    commands = "\n".join(step["block"] for step in STEP.finditer(PAGE) if step["kind"] == "sh")
    for told in (
        "make demo",
        "lyma setup",
        "order",
        "lyma undo",
        "draft-agent",
        "compile-agent",
        "approve",
        "run-compiled",
    ):
        assert told in commands
