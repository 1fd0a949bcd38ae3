"""The small repository tasks, solved by scripted models through the real agent and its real tools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bench.tasks.catalogue import Task, tasks
from bench.tasks.run import rehearse
from bench.tasks.stage import ScriptedModel
from lyma_server.isolation import kernel
from tests.lyma import environment
from tests.raw_client import ROOT
from tests.security.world import BWRAPS, LINUX
from tests.stub_provider import StubProvider, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    LINUX,
    pytest.mark.skipif(not (BWRAPS or kernel.landlock_abi()), reason="this kernel or container confines no command"),
]
ALWAYS = ("crlf-file", "refused-command", "rename-a-function")
REST = [task.name for task in tasks() if task.name not in ALWAYS]


async def solved(name: str) -> None:
    (outcome,) = await rehearse(tasks(name))
    assert not outcome.missing, outcome.missing
    assert outcome.turns == len(tasks(name)[0].steps)
    assert outcome.tool_calls == sum(len(step.reply.calls) for step in tasks(name)[0].steps)


@pytest.mark.parametrize("name", ALWAYS)
async def test_it_is_solved(name: str) -> None:
    await solved(name)


@pytest.mark.full
@pytest.mark.parametrize("name", REST)
async def test_all_others_are_solved(name: str) -> None:
    await solved(name)


def test_there_are_twenty_and_the_tools_take_part() -> None:
    used = {call[0] for task in tasks() for step in task.steps for call in step.reply.calls}
    assert len(tasks()) == 20
    assert used == {
        *("read_file", "list_files", "search", "edit_file", "write_file", "delete_file"),
        *("run_command", "list_commands", "stop_command"),
    }


def made_task(folder: Path, check: str, script: list[dict]) -> Task:
    (folder / "before").mkdir(parents=True)
    (folder / "before/a.txt").write_text("one\n")
    (folder / "request.txt").write_text("Write two.\n")
    (folder / "check.py").write_text(check)
    (folder / "script.json").write_text(json.dumps(script))
    return Task(folder)


TWO = "from facts import text\n\n\ndef check():\n    assert text('a.txt') == 'two\\n', 'it is not two'\n"


async def test_a_model_that_does_nothing_does_not_pass(tmp_path: Path) -> None:
    (outcome,) = await rehearse([made_task(tmp_path / "idle", TWO, [{"say": "Done."}])])
    assert (outcome.passed, outcome.missing) == (False, "it is not two")


async def test_a_check_that_the_untouched_repository_passes_is_no_check(tmp_path: Path) -> None:
    (outcome,) = await rehearse([made_task(tmp_path / "easy", "def check():\n    pass\n", [{"say": "Done."}])])
    assert outcome.missing == "the check passes on the untouched repository"


async def test_what_the_tools_say_must_be_what_the_script_expects(tmp_path: Path) -> None:
    call = ["write_file", {"path": "a.txt", "text": "two\n"}]
    script = [{"calls": [call]}, {"told": "no such words", "say": "Done."}]
    (outcome,) = await rehearse([made_task(tmp_path / "odd", TWO, script)])
    assert outcome.missing.startswith("step 2 expects 'no such words', but was told 'a.txt was changed")


def judged(task: str, place: Path, edit: Callable[[Path], object]) -> subprocess.CompletedProcess[str]:
    """What the check says once `edit` has been at the repository."""
    edit(tasks(task)[0].lay_out(place))
    words = [sys.executable, "-B", "facts.py"]
    return subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=60, check=False)


def in_place(name: str, *changes: tuple[str, str]) -> Callable[[Path], object]:
    def edit(work: Path) -> None:
        text = (work / name).read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (work / name).write_text(text)

    return edit


def one_test(call: str) -> Callable[[Path], object]:
    text = f"import unittest\nfrom slugs import slugify\nclass T(unittest.TestCase):\n    def test(self):\n        {call}\n"
    return lambda work: (work / "test_slugs.py").write_text(text)


CENTS = ("{abs(cents) % 100}", "{abs(cents) % 100:02}")
PHONY = (".PHONY: all clean", ".PHONY: all clean dist")
DIST = "dist: all\n\ttar -cf out.tar out.txt\n\nclean:\n\trm -f out.txt out.tar\n"
CLEAN = "clean:\n\trm -f out.txt\n"


@pytest.mark.parametrize(
    ("task", "edit"),
    [
        ("failing-tests", in_place("money/amount.py", ('half_up(float(text.replace(",", "."))', 'int(float(text.replace(",", ""))'), CENTS)),
        ("add-a-test", one_test("self.assertEqual(slugify('Ab  c '), 'ab-c')")),
        ("add-a-test", one_test("self.assertEqual(slugify('Ab,  c! '), 'ab-c')")),
        ("makefile-target", in_place("Makefile", (CLEAN, DIST.replace("-cf", "-tf")), PHONY)),
        ("makefile-target", in_place("Makefile", (CLEAN, DIST.replace("rm -f", "echo")), PHONY)),
    ],
    ids=["rounds down", "punctuation is not tested", "the start is not tested", "packs nothing", "cleans nothing"],
)  # fmt: skip
def test_a_likely_mistake_is_noticed(task: str, edit: Callable[[Path], object], tmp_path: Path) -> None:
    done = judged(task, tmp_path / "task", edit)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_tools_leave_behind_is_no_mistake(tmp_path: Path) -> None:
    def edit(work: Path) -> None:
        for path in (*work.rglob("*.py"), work / "README.md"):
            path.write_text(re.sub(r"\bget_user\b", "find_user", path.read_text()))
        subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=work, check=True)
        assert list(work.rglob("*.pyc"))

    done = judged("rename-a-function", tmp_path / "task", edit)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench/tasks/run.py", "--live", *arguments]
    surroundings = environment(**variables)
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=120, check=False)


def test_live_a_provider_with_a_key_is_asked_and_judged() -> None:
    key, one = "sk-live-0123456789abcdefghij", "LYMA_PROVIDERS__ONE__"
    with StubProvider([say("I cannot do that.")]) as stub:
        variables = {f"{one}BASE_URL": stub.openai_url, f"{one}MODEL": "m", f"{one}KEYS": key, "LYMA_ORDER": "one"}
        result = run("crlf-file", "json-config", **variables)
    assert result.returncode == 1, result.stderr
    first, *rest = result.stdout.splitlines()
    assert first.startswith("2 tasks for one: ")
    assert rest[-1].startswith("0 of 2 solved")
    assert len(stub.requests) == 2
    assert key not in result.stdout + result.stderr


def test_live_nothing_is_sent_without_a_key() -> None:
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    assert "nothing was asked" in result.stdout


def test_the_model_is_not_asked_again_after_its_last_word() -> None:
    model = ScriptedModel()
    model.play(tasks("crlf-file")[0])
    model.answer("", [{"role": "assistant"}] * 3)
    assert len(model.surprises) == 1
