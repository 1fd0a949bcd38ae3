"""The external factory in the real sandbox: a program that shares nothing with Lyma drafts and compiles, and is not trusted."""

from __future__ import annotations

import ast
import asyncio
import shutil
import time
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.config.model import ExternalSettings, FactorySettings
from lyma_server.errors import ApprovalRequired, CompileFailed, ConfigError, HashMismatch, RunFailed, UsageError
from lyma_server.factory.external import External
from lyma_server.factory.sandbox import Sandbox
from tests.guards import running_children
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import Hang, ScriptedModel, call, say
from tests.security.world import BWRAPS, LINUX

__all__ = ["own_staging", "quick_disk"]

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

REFERENCE = Path(__file__).parents[1] / "external_factory"


class Place:
    """A desk with an external factory, of which the test has its own copy."""

    def __init__(self, folder, *answers, **limits):
        self.desk = Desk(folder, ScriptedModel(*answers), Sandbox())
        self.tree = folder / "tree"
        shutil.copytree(REFERENCE, self.tree, ignore=shutil.ignore_patterns("__pycache__"))
        settings = FactorySettings(
            mode="external",
            command=("python3", "-I", "main.py"),
            tree=str(self.tree),
            external=ExternalSettings(**limits),
        )
        self.external = External(self.desk.factory, settings, self.desk.home, lambda: self.desk.runs)

    def approve(self):
        return self.desk.approve(self.external.prepare())

    async def draft(self, task):
        return await self.external.draft(task, self.desk.workspace, self.desk.events.append)

    async def compile(self, purpose="Counts words"):
        text = (await self.draft(purpose)).encode()
        return await self.external.compile(text, self.desk.workspace, self.desk.events.append)


def test_the_reference_shares_nothing_with_lyma():
    for path in REFERENCE.glob("*.py"):
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        named = [name.name for node in nodes for name in node.names]
        assert not [name for name in named if name.startswith(("lyma", "tests"))]


async def test_the_whole_road_from_a_task_to_a_result(tmp_path):
    place = Place(tmp_path, call(("count", {"text": "a b c"})), say("3"))
    place.approve()
    examined = await place.compile()
    assert examined.bundle is not None
    assert examined.bundle.kind == "data"
    result = await place.desk.run(examined.bundle, "a b c")
    assert (result.status, result.output) == ("ok", {"text": "3"})
    assert place.desk.model.requests[1].messages[2].blocks[0].text == "3"
    told = [event.text for event in place.desk.events if event.kind == "progress"]
    assert told == ["working on draft", "working on compile"]


async def test_it_asks_its_model_through_the_parent_and_its_draft_is_clamped(tmp_path):
    place = Place(tmp_path, say("Counts what is said"))
    place.approve()
    place.desk.factory.ceiling = evolve(place.desk.factory.ceiling, max_output_tokens=100, max_tokens=15_000)
    draft = await place.external.compose("ask count words", place.desk.workspace, place.desk.events.append, "mine")
    assert 'purpose = "Counts what is said"' in draft.text
    assert "tools/count.py" in draft.text
    assert "max_output_tokens = 100" in draft.text
    assert "max_tokens = 15000" in draft.text
    assert draft.path == place.desk.workspace / ".lyma" / "agents" / "mine" / "agent.toml"
    request = place.desk.model.requests[0]
    assert "for this task, in one line: count words" in request.messages[0].blocks[1].text
    assert request.model == "balanced"
    assert request.tools == ()


async def test_without_approval_nothing_of_it_runs(tmp_path):
    place = Place(tmp_path, say("x"))
    with pytest.raises(ApprovalRequired) as caught:
        await place.draft("x")
    assert caught.value.data["hash"] == place.external.prepare().hash
    assert not place.desk.events


async def test_what_is_approved_is_every_byte_of_its_tree_and_every_word(tmp_path):
    place = Place(tmp_path, say("x"))
    hashes = {place.external.prepare().hash}
    (place.tree / "more").mkdir()
    (place.tree / "more" / "x.txt").write_text("1")
    hashes.add(place.external.prepare().hash)
    (place.tree / "more" / "x.txt").write_text("2")
    hashes.add(place.external.prepare().hash)
    (place.tree / "more" / "x.txt").chmod(0o755)
    hashes.add(place.external.prepare().hash)
    (place.tree / "more" / "y").symlink_to("x.txt")
    hashes.add(place.external.prepare().hash)
    place.external.settings = evolve(place.external.settings, command=("python3", "main.py"))
    hashes.add(place.external.prepare().hash)
    place.external.settings = evolve(place.external.settings, external=ExternalSettings(max_turns=21))
    hashes.add(place.external.prepare().hash)
    assert len(hashes) == 7


async def test_a_change_after_the_approval_asks_again(tmp_path):
    place = Place(tmp_path, say("x"))
    place.approve()
    assert await place.draft("x")
    with (place.tree / "main.py").open("a") as file:
        file.write("#\n")
    with pytest.raises(ApprovalRequired):
        await place.draft("x")


async def test_a_copy_that_is_changed_in_lymas_home_is_refused(tmp_path):
    place = Place(tmp_path, say("x"))
    bundle = place.external.prepare()
    hash_ = place.desk.approve(bundle)
    (stored,) = place.desk.home.trees.glob("sha256-*/main.py")
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes() + b"#")
    result = await place.desk.run_hash(hash_, {"method": "draft", "params": {}})
    assert (result.status, result.error.kind) == ("refused", HashMismatch.kind)
    assert await place.draft("x")  # it is made anew from the tree, which is what was approved


async def test_a_person_is_shown_the_words_and_every_file(tmp_path):
    place = Place(tmp_path, say("x"))
    bundle = place.external.prepare()
    place.desk.factory.store.save(bundle)
    shown = place.desk.factory.question(bundle.hash, place.desk.workspace, "terminal").presentation
    assert "a program of its own in its sandbox: /usr/bin/python3 -I /tree/main.py (2 files" in shown.summary
    assert '"agent.py": {' in shown.text


@pytest.mark.parametrize(
    ("task", "status"),
    [("die", "crashed"), ("rubbish", "crashed"), ("flood", "crashed"), ("write", "crashed"), ("sleep", "timeout")],
)
async def test_a_factory_that_misbehaves_is_ended(tmp_path, task, status):
    place = Place(tmp_path, say("x"), wall_s=2 if status == "timeout" else 60)
    place.approve()
    with pytest.raises(RunFailed) as caught:
        await place.draft(task)
    assert caught.value.data["status"] == status
    assert not running_children()


async def test_it_spends_no_more_than_its_budget(tmp_path):
    place = Place(tmp_path, say("x"), max_tokens=10)
    place.approve()
    with pytest.raises(RunFailed) as caught:
        await place.draft("ask x")
    assert caught.value.data["status"] == "budget_exceeded"
    assert not place.desk.model.requests


async def test_cancelling_a_draft_ends_it_in_time(tmp_path):
    hang = Hang()
    place = Place(tmp_path, hang)
    place.approve()
    drafting = asyncio.create_task(place.draft("ask x"))
    await hang.begun.wait()
    began = time.monotonic()
    drafting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drafting
    assert time.monotonic() - began < 3
    assert hang.closed
    assert not running_children()


async def test_what_it_compiles_is_held_to_all_rules(tmp_path):
    place = Place(tmp_path, say("x"))
    place.approve()
    with pytest.raises(CompileFailed, match=r"tools/more\.py"):
        await place.compile("secretly more")
    with pytest.raises(CompileFailed, match="no base64"):
        await place.compile("no base64")
    examined = await place.compile("bad code")
    assert {each.code for each in examined.diagnostics} == {"no_run", "foreign_import"}
    broken = await place.external.compile(b"lyma_agent = 2", place.desk.workspace, place.desk.events.append)
    assert broken.bundle is None
    assert broken.diagnostics


async def test_the_factory_itself_is_not_run_as_an_agent(tmp_path):
    place = Place(tmp_path, say("x"))
    result = await place.desk.run_hash(place.approve(), "do something")
    assert result.status == "refused"
    assert "is a factory" in result.error.message


async def test_an_agent_with_a_loop_of_its_own(tmp_path):
    place = Place(tmp_path, say("red"), say("blue"))
    place.approve()
    text = (await place.draft("of its own")).replace(
        'python = [{ name = "count", file = "tools/count.py", schema = "schema/count.json" }]', ""
    )
    text = text.replace("[files]", '[files]\nread = ["src/**"]\nwrite = ["WORDS.md"]').replace(
        "= 1\nmax_", "= 100\nmax_"
    )
    text = text.replace("max_write_bytes = 1", "max_write_bytes = 100")
    place.desk.write({"src/a": "1", "b": "2"})
    examined = await place.external.compile(text.encode(), place.desk.workspace, place.desk.events.append)
    assert examined.bundle is not None, examined.diagnostics
    assert (examined.bundle.kind, examined.bundle.program) == ("exec", ("/usr/bin/python3", "-I", "/tree/agent.py"))
    refused = await place.desk.run_hash(examined.bundle.hash)
    assert refused.error.kind == "approval_required"
    result = await place.desk.run(examined.bundle)
    assert (result.status, result.output) == ("ok", {"text": "red blue ['src']"})
    assert [(change.path, change.content) for change in result.changes] == [("WORDS.md", b"red blue\n")]
    said = [block.text for block in place.desk.model.requests[1].messages[2].blocks]
    assert said == ["You said red. Say another."]


BAD_TREES = {
    "empty": lambda tree: shutil.rmtree(tree) or tree.mkdir(),
    "gone": shutil.rmtree,
    "a link out": lambda tree: (tree / "x").symlink_to("../../etc"),
    "an absolute link": lambda tree: (tree / "x").symlink_to("/etc/passwd"),
    "a hard link": lambda tree: (tree / "x").hardlink_to(tree / "main.py"),
    "a strange name": lambda tree: (tree / "a\nb").write_text(""),
}


@pytest.mark.parametrize("spoil", BAD_TREES.values(), ids=BAD_TREES)
def test_trees_that_cannot_be_approved(tmp_path, spoil):
    place = Place(tmp_path, say("x"))
    spoil(place.tree)
    with pytest.raises(UsageError):
        place.external.prepare()
    assert not list(place.desk.home.trees.glob(".new-*"))


@pytest.mark.parametrize(
    "command", [(), ("main.py/../x",), ("/bin/sh", "-c", "x"), ("./main.py",), ("/usr/bin/../../x",)]
)
def test_commands_that_start_nothing(tmp_path, command):
    place = Place(tmp_path, say("x"))
    place.external.settings = evolve(place.external.settings, command=command)
    with pytest.raises((UsageError, ConfigError)):
        place.external.prepare()
