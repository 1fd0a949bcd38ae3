"""Drafting: one call of a model, held to the ceiling, written to one place; or a template."""

from __future__ import annotations

import os
import tomllib

import pytest

from lyma_server.config.model import CeilingSettings
from lyma_server.errors import AllFailed, SpecInvalid, UsageError
from lyma_server.factory.compile import Source, compile_agent
from lyma_server.factory.draft import draft_agent, draft_from_template, instructions
from lyma_server.factory.template import template, usual_limits
from tests.agents import document, text_of

CEILING = CeilingSettings()
PLAIN = {"tools__python": [], "output__schema": ""}


class Model:
    """Says the same whatever it is asked."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, told: str, prompt: str) -> str:
        self.asked.append((told, prompt))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def answer(**changes) -> str:
    return text_of(document(**{**PLAIN, **changes})).decode()


async def drafted(model, workspace, name=None, ceiling=CEILING):
    return await draft_agent("summarise the commits", model, ceiling, workspace, name)


@pytest.mark.parametrize("wrap", ["{}", "```toml\n{}```", "Here it is:\n\n```toml\n{}```\nGood luck!", "```\n{}```\n"])
async def test_a_sound_answer_is_written_and_compiles(tmp_path, wrap):
    model = Model(wrap.format(answer()))
    draft = await drafted(model, tmp_path)
    assert draft.path == tmp_path / ".lyma" / "agents" / "changelog-writer" / "agent.toml"
    assert compile_agent(Source(draft.path.read_bytes())) == compile_agent(Source(answer().encode()))
    assert draft.notes == ()
    assert model.asked == [(instructions(CEILING), "summarise the commits")]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["agent.toml"]


async def test_what_the_model_is_told_holds_a_sound_example():
    told = instructions(CEILING)
    example = told.partition("```toml\n")[2].partition("```")[0]
    assert compile_agent(Source(example.encode()))
    for name in ("fs.read", "max_turns 50", "max_bytes 1048576"):
        assert name in told


async def test_limits_are_clamped_to_the_ceiling_and_said(tmp_path):
    low = CeilingSettings(max_turns=5, max_read_bytes=100)
    draft = await drafted(Model(answer(budget__max_turns=10**9, budget__wall_s=...)), tmp_path, ceiling=low)
    made = tomllib.loads(draft.text)
    assert (made["budget"]["max_turns"], made["files"]["max_read_bytes"], made["budget"]["wall_s"]) == (5, 100, 180)
    assert draft.notes == (
        "files.max_read_bytes was lowered from 67108864 to the ceiling of 100.",
        "budget.max_turns was lowered from 1000000000 to the ceiling of 5.",
        "budget.wall_s was missing and is 180 now.",
    )


async def test_missing_tables_of_limits_are_filled_in(tmp_path):
    text = 'name = "a"\npurpose = "b"\ninstructions = "c"\n'
    draft = await drafted(Model(text), tmp_path)
    made = tomllib.loads(draft.text)
    assert {(section, name): made[section][name] for section, name in usual_limits(CEILING)} == usual_limits(CEILING)


REFUSED = {
    "prose": "I cannot do that, sorry.",
    "broken": "```toml\nname = \n```",
    "unknown key": answer(model__provider="openai"),
    "a key": answer(model__key="sk-ant-api03-" + "aB3" * 10),
    "network": answer(network__mode="all"),
    "a shell": answer(tools__allow=["shell"]),
    "zero": answer(budget__max_turns=0),
    "unlimited": answer(budget__max_turns="unlimited"),
    "a boolean": answer(budget__max_turns=True),
    "the environment": answer(files__read=[".env"]),
    "outside": answer(files__read=["../**"]),
    "code": answer(tools__python=[{"name": "a", "file": "tools/a.py", "schema": "schema/a.json"}]),
    "a schema": answer(output__schema="schema/output.json"),
    "hidden": answer(purpose="x\u202ey"),
    "surrogate": "name = '\udcff'",
    "budget as text": 'budget = "much"',
    "deep": "a" + ".a" * 400 + " = 1",
    "": "",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_any_other_answer_is_one_error_that_offers_the_template(tmp_path, name):
    with pytest.raises(SpecInvalid) as caught:
        await drafted(Model(REFUSED[name]), tmp_path)
    assert "lyma draft-agent --from-template NAME" in caught.value.message
    assert caught.value.data["diagnostics"]
    assert "aB3aB3" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


async def test_a_failing_model_leaves_nothing(tmp_path):
    with pytest.raises(AllFailed):
        await drafted(Model(AllFailed("Nobody answered.")), tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_the_name_of_the_model_gives_way_and_that_of_the_person_does_not(tmp_path):
    first = await drafted(Model(answer()), tmp_path)
    second = await drafted(Model(answer()), tmp_path)
    third = await drafted(Model(answer(name="Not a name")), tmp_path, name="mine")
    assert [draft.path.parent.name for draft in (first, second, third)] == [
        "changelog-writer",
        "changelog-writer-2",
        "mine",
    ]
    assert tomllib.loads(second.text)["name"] == "changelog-writer-2"
    assert tomllib.loads(third.text)["name"] == "mine"
    model = Model(answer())
    with pytest.raises(UsageError, match="there already"):
        await drafted(model, tmp_path, name="mine")
    assert model.asked == []


async def test_a_long_name_keeps_its_length_with_a_number(tmp_path):
    for _ in range(2):
        draft = await drafted(Model(answer(name="a" * 48)), tmp_path)
    assert draft.path.parent.name == "a" * 46 + "-2"


@pytest.mark.parametrize("name", ["", "Big", "../up", "/etc", "a/b", "a" * 49, "-a", "a.b", "~"])
async def test_a_name_that_is_none_is_refused_before_the_model_is_asked(tmp_path, name):
    model = Model(answer())
    with pytest.raises(UsageError):
        await drafted(model, tmp_path, name=name)
    with pytest.raises(UsageError):
        draft_from_template(name, CEILING, tmp_path)
    assert model.asked == []
    assert list(tmp_path.iterdir()) == []


async def test_an_empty_task_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nothing to draft"):
        await draft_agent("  \n", Model(answer()), CEILING, tmp_path)


LINKS = [".lyma", ".lyma/agents", ".lyma/agents/mine", ".lyma/agents/mine/agent.toml"]


@pytest.mark.parametrize("link", LINKS)
def test_nothing_is_written_through_a_link(tmp_path, link):
    workspace, outside = tmp_path / "app", tmp_path / "outside"
    outside.mkdir()
    (workspace / link).parent.mkdir(parents=True)
    (workspace / link).symlink_to(outside / "target" if link.endswith(".toml") else outside)
    with pytest.raises(UsageError, match="cannot be written"):
        draft_from_template("mine", CEILING, workspace)
    assert list(outside.iterdir()) == []


def test_a_file_in_the_way_and_a_workspace_that_is_gone(tmp_path):
    (tmp_path / ".lyma").write_text("")
    with pytest.raises(UsageError, match="no folder"):
        draft_from_template("mine", CEILING, tmp_path)
    with pytest.raises(UsageError, match="not there"):
        draft_from_template("mine", CEILING, tmp_path / "gone")


def test_the_template_is_written_once(tmp_path):
    draft = draft_from_template("mine", CEILING, tmp_path)
    assert draft.path.read_text() == template("mine", CEILING)
    assert compile_agent(Source(draft.path.read_bytes()))
    with pytest.raises(UsageError, match="is there already; edit it, or choose another name"):
        draft_from_template("mine", CEILING, tmp_path)
    assert os.access(draft.path, os.W_OK)


async def test_too_many_of_one_name(tmp_path):
    for number in range(1, 100):
        folder = tmp_path / ".lyma" / "agents" / (f"a-{number}" if number > 1 else "a")
        folder.mkdir(parents=True)
        (folder / "agent.toml").touch()
    with pytest.raises(UsageError, match="100 agents named a"):
        await drafted(Model(answer(name="a")), tmp_path)
