"""Programs of others: their trees, their words, and what they may say by lines and to the model."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from lyma_server.config.model import ExternalSettings
from lyma_server.errors import CompileFailed, HashMismatch, RunFailed, UsageError
from lyma_server.factory import trees
from lyma_server.factory.bridge import RESULTS, Bridge, is_question
from lyma_server.factory.bundle import TREE
from lyma_server.factory.canonical import digest
from lyma_server.factory.capabilities import capabilities
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.conversation import Conversation, Misbehaved
from lyma_server.factory.dialogue import ChildGone, SchemaMismatch
from lyma_server.factory.foreign import factory_bundle, inside_words, with_program
from lyma_server.factory.lines import MOST, Lines
from lyma_server.factory.store import Store
from tests.agents import bundle, plain_bundle
from tests.scripted_model import call, say

FILES = {"main.py": (b"print()\n", True), "lib/x.py": (b"", False)}


@pytest.fixture
def program(tmp_path):
    root = tmp_path / "program"
    (root / "lib").mkdir(parents=True)
    (root / "main.py").write_bytes(b"print()\n")
    (root / "main.py").chmod(0o755)
    (root / "lib" / "x.py").write_bytes(b"")
    (root / "lib" / "again.py").symlink_to("../main.py")
    (root / "also").symlink_to("lib")
    return root


def test_a_tree_comes_back_as_it_was(tmp_path, program):
    listing = trees.adopt(program, tmp_path / "trees")
    trees.lay_out(listing, tmp_path / "trees", tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "main.py").read_bytes() == b"print()\n"
    assert os.access(out / "main.py", os.X_OK)
    assert (out / "main.py").stat().st_mode & 0o777 == 0o555
    assert (out / "lib" / "x.py").stat().st_mode & 0o777 == 0o444
    assert os.readlink(out / "lib" / "again.py") == "../main.py"
    assert (out / "also" / "x.py").read_bytes() == b""
    assert (out / "lib").stat().st_mode & 0o777 == 0o755


def test_the_same_tree_is_stored_once_and_mended_where_it_was_damaged(tmp_path, program):
    place = tmp_path / "trees"
    listing = trees.adopt(program, place)
    (stored,) = place.iterdir()
    (stored / "main.py").chmod(0o600)
    (stored / "main.py").write_bytes(b"evil()\n")
    with pytest.raises(HashMismatch):
        trees.lay_out(listing, place, tmp_path / "out")
    assert trees.adopt(program, place) == listing
    assert [path.name for path in place.iterdir()] == [stored.name]
    trees.lay_out(listing, place, tmp_path / "again")


@pytest.mark.parametrize("spoil", ["remove", "link", "replace"])
def test_a_stored_tree_that_was_changed_is_not_laid_out(tmp_path, program, spoil):
    listing = trees.adopt(program, tmp_path / "trees")
    (stored,) = (tmp_path / "trees").iterdir()
    target = stored / "lib" / "x.py"
    target.unlink()
    if spoil == "link":
        target.symlink_to(program / "lib" / "x.py")
    elif spoil == "replace":
        target.write_bytes(b"1")
    with pytest.raises(HashMismatch):
        trees.lay_out(listing, tmp_path / "trees", tmp_path / "out")


def test_trees_by_bytes_and_by_folder_are_the_same(tmp_path, program):
    (program / "lib" / "again.py").unlink()
    (program / "also").unlink()
    assert trees.save(FILES, tmp_path / "a") == trees.adopt(program, tmp_path / "b")


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/../b", "", "a\nb", "/".join("a" * 40), "."])
def test_names_that_no_tree_holds(tmp_path, name):
    with pytest.raises(UsageError):
        trees.save({name: (b"", False)}, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("sha256")]


def test_a_tree_that_is_too_large_is_refused(tmp_path, program, monkeypatch):
    monkeypatch.setattr(trees, "LARGEST", 7)
    with pytest.raises(UsageError):
        trees.adopt(program, tmp_path / "trees")
    assert not list((tmp_path / "trees").iterdir())


def test_a_tree_that_is_not_there_is_said_with_its_setting(tmp_path):
    with pytest.raises(UsageError, match=r"gone cannot be used \(No such file or directory\); set factory.tree to"):
        trees.adopt(tmp_path / "gone", tmp_path / "trees")


@pytest.mark.parametrize(
    ("words", "inside"),
    [
        (("python3", "-I", "main.py"), ("/usr/bin/python3", "-I", "/tree/main.py")),
        (("/opt/x/main.py", "--in", "/opt/x/lib"), ("/tree/main.py", "--in", "/tree/lib")),
        (("main.py",), ("/tree/main.py",)),
        (("/usr/bin/env", "main.py", "other"), ("/usr/bin/env", "/tree/main.py", "other")),
    ],
)
def test_words_are_what_they_are_inside(tmp_path, words, inside):
    assert inside_words(words, "/opt/x/", trees.save(FILES, tmp_path)) == inside


def test_a_factory_is_a_bundle_that_can_be_stored_and_shown(tmp_path):
    listing = trees.save(FILES, tmp_path / "trees")
    made = factory_bundle(("main.py",), "/opt/x", listing, ExternalSettings())
    store = Store(tmp_path / "home" / "agents")
    (tmp_path / "home").mkdir()
    store.save(made)
    assert store.load(made.hash) == made
    told = [capability.text for capability in capabilities(made)]
    assert (
        "drafts and compiles agents by a program of its own in its sandbox: /tree/main.py (2 files, 8 bytes" in told[0]
    )
    assert any("changes no file" in text for text in told)


def test_an_agent_with_a_program_can_write_without_a_tool_and_has_none_in_python(tmp_path):
    listing = trees.save(FILES, tmp_path)
    agent = with_program(plain_bundle(tools__allow=[]), ("main.py",), listing)
    assert (agent.kind, agent.program, agent.files[TREE]) == ("exec", ("/tree/main.py",), listing)
    assert any("changes CHANGELOG.md" in capability.text for capability in capabilities(agent))
    with pytest.raises(CompileFailed):
        with_program(bundle(), ("main.py",), listing)


def conversation(made):
    return Conversation(made, (), "go", lambda text: text.replace("secret", "[redacted]"), "s", "/")


def test_only_a_program_of_its_own_speaks_to_the_model(tmp_path):
    made = with_program(plain_bundle(), ("main.py",), trees.save(FILES, tmp_path))
    own, data = conversation(made), conversation(plain_bundle())
    own.take([{"say": "one secret"}, {"say": "two"}])
    assert [block.text for block in own.request().messages[0].blocks[1:]] == ["one [redacted]", "two"]
    own.hear(say("x"))
    for wrong in ([{"say": 1}], [], [{"say": "x", "role": "system"}]):
        with pytest.raises(Misbehaved):
            own.take(wrong)
    with pytest.raises(Misbehaved):
        data.take([{"say": "one"}])


def test_what_it_says_follows_the_results(tmp_path):
    made = with_program(plain_bundle(tools__allow=["fs.list"]), ("main.py",), trees.save(FILES, tmp_path))
    from lyma_server.factory.tool_specs import tools_for

    own = Conversation(made, tools_for(made), "go", str, "s", "/")
    own.take([])
    own.hear(call(("fs-list", {})))
    with pytest.raises(Misbehaved):
        own.take([{"say": "x"}, {"call": "c0", "text": "", "is_error": False}])
    own.take([{"call": "c0", "text": "a", "is_error": False}, {"say": "now go on"}])
    assert [getattr(block, "text", "") for block in own.request().messages[-1].blocks] == ["a", "now go on"]


class Pipe:
    """Stands for a program: what it says, and what it is told."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def listen(self, hear):
        self.say = hear
        return self.writing

    @property
    def told(self):
        return [json.loads(line) for line in os.read(self.reading, 1 << 16).splitlines()]

    def close(self):
        for descriptor in (self.reading, self.writing):
            os.close(descriptor)


@pytest.fixture
def pipe():
    made = Pipe()
    yield made
    made.close()


async def test_lines_arrive_whole_however_they_are_cut(pipe):
    lines = Lines(pipe.listen)
    for at in range(0, 24, 5):
        pipe.say(b'{"a": "\xc3\xa9"}\n{"b": 2}\n{"c"'[at : at + 5])
    assert [await lines.receive(), await lines.receive()] == [{"a": "é"}, {"b": 2}]
    pipe.say(b"")
    assert await lines.receive() is None


@pytest.mark.parametrize("line", [b"x\n", b"[]\n", b'{"a": NaN}\n', b'{"a": 1, "a": 2}\n', b"\xff\n", b"\n"])
async def test_lines_that_are_no_objects(pipe, line):
    lines = Lines(pipe.listen)
    pipe.say(line)
    with pytest.raises(ChannelFault):
        await lines.receive()


async def test_a_program_that_says_too_much(pipe):
    lines = Lines(pipe.listen)
    for _ in range(MOST // (1 << 20) + 1):
        pipe.say(b"x" * (1 << 20))
    with pytest.raises(ChannelFault):
        await lines.receive()
    assert not lines._heard


async def test_a_program_that_does_not_listen_holds_nobody_up_for_ever(pipe):
    lines = Lines(pipe.listen)
    sending = asyncio.create_task(lines.send({"text": "x" * (1 << 20)}))
    await asyncio.sleep(0.01)
    assert not sending.done()
    os.close(pipe.reading)
    with pytest.raises(ChannelFault):
        await sending
    pipe.reading = os.open("/dev/null", os.O_RDONLY)


class Silent:
    """A dialogue in which the program asks no model."""

    def __init__(self, error=None):
        self.error = error

    async def serve(self):
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()


GOOD = {"jsonrpc": "2.0", "id": 1, "result": {"protocol": 1}}
DRAFT = {"jsonrpc": "2.0", "id": 2, "result": {"spec_toml": "x"}}
PROGRESS = {"jsonrpc": "2.0", "method": "progress", "params": {"text": "so far"}}


async def answered(pipe, *messages, dialogue=None):
    told = []
    bridge = Bridge(Lines(pipe.listen), dialogue or Silent(), told.append)
    for message in messages:
        pipe.say(json.dumps(message).encode() + b"\n")
    pipe.say(b"")
    return await bridge.ask("draft", {"task": "x"}), told


async def test_a_draft(pipe):
    assert await answered(pipe, GOOD, PROGRESS, DRAFT) == ({"spec_toml": "x"}, ["so far"])
    assert [message["method"] for message in pipe.told] == ["initialize", "draft"]


async def test_a_factory_may_close_the_descriptor_of_its_model(pipe):
    assert (await answered(pipe, GOOD, DRAFT, dialogue=Silent(ChildGone("gone"))))[0] == {"spec_toml": "x"}


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], ChildGone),
        ([GOOD], ChildGone),
        ([{**GOOD, "id": 2}], Misbehaved),
        ([{**GOOD, "id": True}], Misbehaved),
        ([{**GOOD, "jsonrpc": "1.0"}], Misbehaved),
        ([{**GOOD, "more": 1}], Misbehaved),
        ([{"jsonrpc": "2.0", "id": 1}], Misbehaved),
        ([{**GOOD, "result": {"protocol": 2}}], SchemaMismatch),
        ([GOOD, {**DRAFT, "result": {"spec_toml": 1}}], SchemaMismatch),
        ([GOOD, {**DRAFT, "result": {"spec_toml": "x", "hash": "sha256:0"}}], SchemaMismatch),
        ([{**PROGRESS, "method": "approve"}], Misbehaved),
        ([{**PROGRESS, "id": 1}], Misbehaved),
        ([{**PROGRESS, "params": []}], Misbehaved),
        ([{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no\x1b[2J"}}], RunFailed),
    ],
)
async def test_answers_that_end_it(pipe, messages, error):
    with pytest.raises(error) as caught:
        await answered(pipe, *messages)
    assert "\x1b" not in str(caught.value)
    assert pipe.told[-1]["method"] == "cancel"


async def test_what_goes_wrong_with_its_model_ends_it(pipe):
    bridge = Bridge(Lines(pipe.listen), Silent(Misbehaved("two steps")), lambda _text: None)
    with pytest.raises(Misbehaved):
        await bridge.ask("draft", {})


@pytest.mark.parametrize(
    "value", ["x", None, {}, {"method": "initialize", "params": {}}, {"method": "draft", "params": 1}]
)
def test_what_is_no_question(value):
    assert not is_question(value)


def test_every_method_has_the_schema_of_its_result():
    assert set(RESULTS) == {"initialize", "draft", "compile"}


def test_trees_that_nobody_has_used_for_long_go(tmp_path, program):
    stored = tmp_path / "trees"
    listing = trees.adopt(program, stored)
    (program / "more").touch()
    other = trees.adopt(program, stored)
    (stored / "sha256-link").symlink_to(program)
    (stored / "other").mkdir()
    places = [stored / f"sha256-{digest(each)}" for each in (listing, other)]
    for place in (*places, stored / "other"):
        os.utime(place, (1000, 1000))
    trees.lay_out(listing, stored, tmp_path / "out")
    assert trees.prune(stored, 2000) == 1
    assert {path.name for path in stored.iterdir()} == {places[0].name, "sha256-link", "other"}
    os.utime(places[0], (1000, 1000))
    (program / "more").unlink()
    assert trees.adopt(program, stored) == listing
    assert trees.prune(stored, 2000) == 0
    trees.discard(stored, listing)
    assert (list(stored.glob("sha256-*")), (program / "main.py").exists()) == ([stored / "sha256-link"], True)
    assert trees.prune(tmp_path / "nothing", 2000) == 0
