"""Agents from the terminal: drafted, compiled, read, approved by a person, revoked; and what nobody but a person can do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.agents import EXAMPLES, document, text_of
from tests.lyma import environment, run_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.stub_provider import StubProvider, say

AGENT = "changelog-writer"
PROMPT = 'To approve type the last 6 digits of its hash, to refuse "reject": '


@pytest.fixture
def workspace(tmp_path):
    made = tmp_path / "app"
    shutil.copytree(EXAMPLES / AGENT, made / ".lyma" / "agents" / AGENT)
    return made


def lyma(workspace, *arguments, **options):
    return run_lyma(*arguments, cwd=workspace, **options)


def compiled(workspace) -> str:
    done = lyma(workspace, "compile-agent", AGENT)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def standing(workspace, hash_) -> str:
    rows = [json.loads(line) for line in lyma(workspace, "agents", "--json").stdout.splitlines()]
    return next(row["here"] for row in rows if row["hash"] == hash_)


def approve(workspace, env, hash_, *typed) -> tuple[int, str]:
    with PseudoTerminal("approve", hash_[:20], env=env, cwd=workspace) as terminal:
        for each in typed:
            terminal.expect(PROMPT)
            terminal.type(each)
        return terminal.leave(), terminal.shown.replace("\r\n", "\n")


def test_from_a_template_to_an_approval_and_back(tmp_path, lyma_env):
    assert "begin with `lyma draft-agent --from-template NAME`" in lyma(tmp_path, "compile-agent").stderr
    drafted = lyma(tmp_path, "draft_agent", "--from-template", "todo-triage")
    assert drafted.stdout == f"{tmp_path}/.lyma/agents/todo-triage/agent.toml\n"
    hash_ = lyma(tmp_path, "compile_agent").stdout.strip()
    listed = lyma(tmp_path, "agents").stdout
    assert "todo-triage" in listed
    assert "waiting" in listed
    code, shown = approve(tmp_path, lyma_env, hash_, "yes", hash_[7:13], hash_[-6:-1], hash_[-6:])
    assert code == 0
    assert f"Approved for {tmp_path} until 20" in shown
    assert standing(tmp_path, hash_) == "approved"
    approvals = lyma(tmp_path, "approve", "--list").stdout
    assert all(word in approvals for word in ("todo-triage", hash_[:18], "terminal", str(tmp_path)))
    revoked = lyma(tmp_path, "approve", "--revoke", hash_)
    assert "1 approval" in revoked.stdout
    assert standing(tmp_path, hash_) == "revoked"
    assert "revoked" in lyma(tmp_path, "approve", "--list").stdout
    assert approve(tmp_path, lyma_env, hash_, hash_[-6:])[0] == 0
    assert standing(tmp_path, hash_) == "approved"


def test_what_is_removed_is_not_listed_and_not_approved(workspace, lyma_env):
    hash_ = compiled(workspace)
    approve(workspace, lyma_env, hash_, hash_[-6:])
    spec = workspace / ".lyma" / "agents" / AGENT / "agent.toml"
    written = spec.read_text()
    spec.write_text(written.replace("max_turns = 8", "max_turns = 9"))
    other = compiled(workspace)
    done = lyma(workspace, "agents", "remove", hash_[7:15], other)
    assert done.stdout == f"Removed {hash_} (1 approval was taken back).\nRemoved {other} (it was not approved).\n"
    assert "no compiled agents" in lyma(workspace, "agents").stdout
    again = lyma(workspace, "agents", "remove", hash_)
    assert (again.returncode, "There is no compiled agent" in again.stderr) == (2, True)
    spec.write_text(written)
    assert compiled(workspace) == hash_
    assert standing(workspace, hash_) == "revoked"


def test_what_the_person_sees_before_the_question(workspace, lyma_env):
    hash_ = compiled(workspace)
    code, shown = approve(workspace, lyma_env, hash_, "reject")
    assert code == 3
    assert "a person said no" in shown
    before = shown.partition(PROMPT)[0]
    for text in ("changes CHANGELOG.md, as a patch", "has no network", "--- instructions of changelog-writer ---",
                 "  | The input is the output of `git log`", '  |   "additionalProperties": false', hash_):  # fmt: skip
        assert text in before
    assert standing(workspace, hash_) == "waiting"


def test_a_change_is_another_agent_and_is_shown_as_a_difference(workspace, lyma_env):
    first = compiled(workspace)
    approve(workspace, lyma_env, first, first[-6:])
    spec = workspace / ".lyma" / "agents" / AGENT / "agent.toml"
    spec.write_text(spec.read_text().replace("max_turns = 8", "max_turns = 9"))
    second = compiled(workspace)
    assert second != first
    assert standing(workspace, second) == "waiting"
    code, shown = approve(workspace, lyma_env, second, second[-6:])
    assert code == 0
    assert f"It differs from {first}" in shown
    assert '  | -      "max_turns": 8,' in shown
    assert '  | +      "max_turns": 9,' in shown


def test_an_approval_is_for_one_folder(workspace, lyma_env, tmp_path):
    hash_ = compiled(workspace)
    approve(workspace, lyma_env, hash_, hash_[-6:])
    (tmp_path / "other").mkdir()
    assert standing(tmp_path / "other", hash_) == "waiting"


def test_without_a_person_at_a_terminal_nothing_is_approved(workspace):
    hash_ = compiled(workspace)
    for typed in ("", f"{hash_[-6:]}\n" * 20, "yes\n" * 20):
        done = lyma(workspace, "approve", hash_, stdin=typed)
        assert done.returncode == 3
        assert done.stderr == f"lyma: {hash_} is not approved: that takes a person at a terminal, who answers there.\n"
    assert standing(workspace, hash_) == "waiting"


def test_what_was_typed_ahead_and_an_end_of_input_approve_nothing(workspace, lyma_env):
    hash_ = compiled(workspace)
    with PseudoTerminal("approve", hash_, env=lyma_env, cwd=workspace) as terminal:
        terminal.type(hash_[-6:])
        terminal.expect(PROMPT)
        terminal.press("\x04")
        assert terminal.leave() == 3
    assert standing(workspace, hash_) == "waiting"


def test_an_interrupted_question_is_withdrawn(workspace, lyma_env):
    hash_ = compiled(workspace)
    with PseudoTerminal("approve", env=lyma_env, cwd=workspace) as terminal:
        terminal.expect(PROMPT)
        terminal.interrupt()
        assert terminal.leave() == 130
    assert standing(workspace, hash_) == "waiting"


def test_an_agent_that_does_not_hold_is_explained_with_its_lines(workspace):
    spec = workspace / ".lyma" / "agents" / AGENT / "agent.toml"
    spec.write_text(spec.read_text().replace("max_turns = 8", "max_turns = 0").replace("fs.write", "fs.wriet"))
    done = lyma(workspace, "compile-agent")
    assert (done.returncode, done.stdout) == (1, "")
    tool, turns = done.stderr.splitlines()
    assert tool.startswith(f".lyma/agents/{AGENT}/agent.toml, line 25: tools.allow (item 2)")
    assert "did you mean fs.write?" in tool
    assert turns.startswith(f".lyma/agents/{AGENT}/agent.toml, line 35: budget.max_turns must be")
    as_json = json.loads(lyma(workspace, "compile-agent", "--json").stdout)
    assert as_json["hash"] is None
    assert [each["line"] for each in as_json["diagnostics"]] == [25, 35]


@pytest.mark.parametrize("named", [AGENT, f".lyma/agents/{AGENT}", f".lyma/agents/{AGENT}/agent.toml", None])
def test_an_agent_is_named_in_every_plain_way(workspace, named):
    done = lyma(workspace, "compile-agent", *([named] if named else []))
    assert done.stdout.startswith("sha256:")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compile-agent", "nothing"), "name the folder of an agent"),
        (("draft-agent",), "Say what the agent should do"),
        (("draft-agent", "x", "--from-template", "y"), "one of the two"),
        (("draft-agent", "--from-template", "Bad Name"), "is no name for an agent"),
        (("draft-agent", "--from-template", AGENT), "is there already"),
        (("approve", "zzz"), "is no hash"),
        (("run-compiled-agent", "zzz"), "is no hash"),
        (("run_compiled_agent",), "arguments are required: HASH"),
        (("approve", "sha256:000000"), "There is no compiled agent"),
        (("approve",), "waiting in this folder: none"),
        (("approve", "--revoke", "sha256:12"), "give at least 6 digits"),
        (("approve", "--revoke", "sha256:000000"), "names no compiled or approved agent"),
        (("draft-agent", "--from-template", "x", "--name", "y"), "leave --name out"),
        (("approve", "--list", "--revoke", "x"), "not allowed with"),
        (("agents", "remove"), "arguments are required: HASH"),
        (("agents", "remove", "sha256:12"), "is no hash"),
    ],
)
def test_wrong_usage_is_one_sentence(workspace, arguments, said):
    done = lyma(workspace, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("draft-agent", "--from-template", "x"), ("approve",), ("run-compiled-agent", "sha256:000000")]
)
def test_agents_do_not_work_in_a_home_or_in_lymas_own_folder(lyma_env, command):
    home = Path(lyma_env["LYMA_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    for folder in (Path("/"), home, home.parent):
        done = lyma(folder, *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Agents do not work in" in done.stderr
    assert not (home / "agents").exists()


def test_the_schema_of_agent_toml_is_printed():
    schema = json.loads(run_lyma("schema", "--agent").stdout)
    assert schema["properties"]["budget"]["properties"]["max_turns"]["maximum"] == 50


def test_there_is_something_to_say_where_there_is_nothing(tmp_path):
    assert "no compiled agents" in lyma(tmp_path, "agents").stdout
    assert "Nothing is approved" in lyma(tmp_path, "approve", "--list").stdout
    assert lyma(tmp_path, "compile-agent").returncode == 2


def test_a_log_that_was_tampered_with_is_told(workspace, lyma_env):
    hash_ = compiled(workspace)
    approve(workspace, lyma_env, hash_, hash_[-6:])
    lyma(workspace, "approve", "--revoke", hash_)
    log = Path(lyma_env["LYMA_HOME"]) / "audit.jsonl"
    log.write_text(log.read_text().replace("approved", "rejected"))
    assert "tampered with or damaged: line 2" in lyma(workspace, "approve", "--list").stderr


def drafting(workspace, answer, *arguments):
    with StubProvider([say(*answer)]) as stub:
        env = {"ANTHROPIC_API_KEY": "sk-ant-api03-test-key-0123456789", "ANTHROPIC_BASE_URL": stub.anthropic_url}
        done = lyma(workspace, "draft-agent", *arguments, env=environment(**env))
        return done, stub.requests


def test_a_model_drafts_and_its_limits_are_lowered(tmp_path):
    made = document(tools__python=[], output__schema="", budget__max_turns=5000)
    done, requests = drafting(tmp_path, ("```toml\n", text_of(made).decode(), "```"), "summarise", "the", "commits")
    assert done.returncode == 0, done.stderr
    assert "budget.max_turns was lowered from 5000 to the ceiling of 50." in done.stderr
    assert done.stdout == f"{tmp_path}/.lyma/agents/changelog-writer/agent.toml\n"
    assert len(requests) == 1
    assert "summarise the commits" in json.dumps(requests[0].body)
    assert lyma(tmp_path, "compile-agent").returncode == 0


def test_a_model_that_cannot_draft_is_one_sentence_that_offers_the_template(tmp_path):
    done, _ = drafting(tmp_path, ("I would rather not.",), "summarise")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--from-template" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
