"""Files of runs: what reaches the child, and what may come back from it."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from lyma_server.factory.globs import may_hold
from lyma_server.factory.outcome import Change
from lyma_server.factory.patch import patch_of
from tests.agents import plain_bundle
from tests.fake_child import FakeSandbox
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import ScriptedModel, say

__all__ = ["own_staging", "quick_disk"]

AGENT = plain_bundle(
    files__read=["**", ".github/**"], files__write=["CHANGELOG.md", "docs/**"], tools__allow=["fs.read", "fs.write"]
)


def putting(*files, before=None):
    """A child that sends these, and then a result."""

    async def life(child):
        await child.hello()
        if before is not None:
            before()
        for path, content in files:
            await child.put(path, content)
        await child.result({"text": "x"})

    return life


def desk_with(tmp_path, *files, before=None):
    return Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(putting(*files, before=before)))


async def test_the_child_sees_copies_of_what_the_globs_match(tmp_path):
    desk = desk_with(tmp_path)
    kept = {"a.py": b"1", "deep/er/b.py": b"\xff\0", ".github/c": b"2", "leer": b""}
    left = {".env": "3", ".git/config": "4", "x/.lyma/y": "5", "id_rsa": "6", ".hidden/z": "7", "x/key.pem": "8"}
    desk.write({**kept, **left})
    (desk.workspace / "link").symlink_to(tmp_path / "home")
    (desk.workspace / "linked").symlink_to("a.py")
    os.link(desk.workspace / ".env", desk.workspace / "innocent")
    os.mkfifo(desk.workspace / "pipe")
    assert (await desk.run(AGENT)).status == "ok"
    assert desk.sandbox.staged == [kept]


async def test_a_workspace_that_is_a_link_works_and_one_that_is_gone_is_refused(tmp_path):
    desk = desk_with(tmp_path)
    desk.write({"a": "1"})
    hash_ = desk.approve(AGENT)
    (tmp_path / "link").symlink_to(desk.workspace)
    desk.workspace = tmp_path / "link"
    assert (await desk.run_hash(hash_)).status == "ok"
    desk.workspace = tmp_path / "gone"
    assert (await desk.run_hash(hash_)).status == "refused"


async def test_changes_come_back_as_data_and_as_a_patch_and_nothing_is_applied(tmp_path):
    desk = desk_with(tmp_path, ("CHANGELOG.md", "old\nnew\n"), ("docs/a/b.md", "fresh"))
    desk.write({"CHANGELOG.md": "old\n"})
    result = await desk.run(AGENT)
    assert [change.path for change in result.changes] == ["CHANGELOG.md", "docs/a/b.md"]
    assert result.changes[0] == Change("CHANGELOG.md", hashlib.sha256(b"old\n").hexdigest(), b"old\nnew\n")
    assert result.changes[1] == Change("docs/a/b.md", None, b"fresh")
    assert (desk.workspace / "CHANGELOG.md").read_text() == "old\n"
    subprocess.run(["git", "apply", str(result.patch)], cwd=desk.workspace, check=True)
    assert (desk.workspace / "CHANGELOG.md").read_text() == "old\nnew\n"
    assert (desk.workspace / "docs/a/b.md").read_text() == "fresh"


async def test_what_does_not_differ_is_no_change(tmp_path):
    desk = desk_with(tmp_path, ("CHANGELOG.md", "old\n"))
    desk.write({"CHANGELOG.md": "old\n"})
    result = await desk.run(AGENT)
    assert (result.changes, result.patch) == ((), None)


FORBIDDEN = [
    "../CHANGELOG.md",
    "/etc/passwd",
    "docs/../CHANGELOG.md",
    "docs//a",
    "docs/a\0b",
    "docs/a\\b",
    "docs/.",
    "docs/a.",
    "README.md",
    "docs",
    "",
    "docs/" + "x" * 2000,
    "docs/.git/hooks/pre-commit",
    "docs/.GIT/hooks/x",
    "docs/.git\u200b/hooks/x",
    "docs/git~1/x",
    "docs/.envrc",
    "docs/AGENTS.md",
    "docs/AGENTS.override.md",
    "docs/lefthook.yml",
    "docs/sitecustomize.py",
    "docs/.vscode/tasks.json",
    "changelog.md",
    "docs/\ud800",
    "C:docs/a",
]


@pytest.mark.parametrize("path", FORBIDDEN)
async def test_paths_that_may_not_be_written_end_the_run(tmp_path, path):
    if "\ud800" in path:
        with pytest.raises(UnicodeEncodeError):
            path.encode()
        path = path.replace("\ud800", "\x85")
    desk = desk_with(tmp_path, ("CHANGELOG.md", "good"), (path, "x"))
    result = await desk.run(AGENT)
    assert (result.status, result.error.kind) == ("refused", "forbidden")
    assert result.changes == ()
    assert not list(desk.workspace.iterdir())


async def test_an_agent_without_the_tool_for_it_writes_nothing(tmp_path):
    desk = desk_with(tmp_path, ("CHANGELOG.md", "x"))
    agent = plain_bundle(files__write=["CHANGELOG.md"], tools__allow=["fs.read"])
    assert (await desk.run(agent)).status == "refused"


@pytest.mark.parametrize("target", ["docs", "docs/a.md"])
async def test_a_link_in_the_way_is_not_followed(tmp_path, target):
    desk = desk_with(tmp_path, ("docs/a.md", "x"))
    path = desk.workspace / target
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path)
    assert (await desk.run(AGENT)).error.kind == "forbidden"


@pytest.mark.parametrize("there", ["Docs/b.md", "docs/A.md"])
async def test_a_twin_in_letter_case_is_refused(tmp_path, there):
    desk = desk_with(tmp_path, ("docs/a.md", "x"))
    desk.write({there: "y"})
    assert (await desk.run(AGENT)).error.kind == "forbidden"


async def test_a_file_that_changed_meanwhile_is_refused(tmp_path):
    desk = desk_with(tmp_path, ("CHANGELOG.md", "x"), before=lambda: desk.write({"CHANGELOG.md": "theirs"}))
    desk.write({"CHANGELOG.md": "old"})
    result = await desk.run(AGENT)
    assert (result.status, result.error.kind) == ("refused", "edit_conflict")


async def test_a_file_that_vanished_meanwhile_is_refused(tmp_path):
    desk = desk_with(tmp_path, ("CHANGELOG.md", "x"), before=lambda: (desk.workspace / "CHANGELOG.md").unlink())
    desk.write({"CHANGELOG.md": "old"})
    assert (await desk.run(AGENT)).error.kind == "edit_conflict"


async def test_pieces_are_put_together_and_half_a_file_is_no_result(tmp_path):
    async def life(child):
        await child.hello()
        await child.put("docs/a", b"\x00\x01", more=True)
        await child.put("docs/b", b"b")
        if whole:
            await child.put("docs/a", b"\xff")
        await child.result({"text": "x"})

    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(life))
    whole = True
    result = await desk.run(AGENT)
    assert [change.content for change in result.changes] == [b"\x00\x01\xff", b"b"]
    assert "Binary files" in result.patch.read_text()
    whole = False
    assert (await desk.run(AGENT)).status == "crashed"


async def test_what_is_no_base64_ends_the_run(tmp_path):
    async def life(child):
        await child.hello()
        await child.ask("put_file", path="docs/a", base64="a b c", more=False)

    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(life))
    assert (await desk.run(AGENT)).error.kind == "forbidden"


async def test_a_run_that_fails_changes_nothing(tmp_path):
    async def life(child):
        await child.hello()
        await child.put("docs/a", "x")

    desk = Desk(tmp_path, ScriptedModel(say("x")), FakeSandbox(life))
    result = await desk.run(AGENT)
    assert (result.status, result.changes, result.patch) == ("crashed", (), None)


@pytest.mark.parametrize(
    ("folder", "globs", "holds"),
    [
        ("src", ["src/**"], True),
        ("src/a/b", ["src/**"], True),
        ("src", ["**"], True),
        ("src", ["**/*.py"], True),
        ("src", ["src/*/x.py"], True),
        ("src/a", ["src/*/x.py"], True),
        ("src/a/b", ["src/*/x.py"], False),
        ("src", ["CHANGELOG.md"], False),
        ("src", ["src"], False),
        ("docs", ["src/**"], False),
        (".github", ["**"], False),
        (".github", [".github/**"], True),
        ("a/.github", ["**/.github/*"], True),
        ("a/b", ["*/c/*", "a/b/c"], True),
        ("a", [], False),
    ],
)
def test_only_folders_that_may_hold_something_are_walked(folder, globs, holds):
    assert may_hold(folder, globs) == holds


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, b"a\nb"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"", b"x\n"),
        (b"x\n", b""),
        (b"a\n" * 9000, b"b\n" * 9000),
        (b"1\n2\n3\n", b"1\n2\nx\n3"),
        (b"c", b"\n"),
        ("é\x0cb\u2028c\n".encode(), "é\x0cb\u2028d\n".encode()),
    ],
)
def test_patches_are_what_git_applies(tmp_path, old, new):
    if old is not None:
        (tmp_path / "f").write_bytes(old)
    patch = patch_of([("f", old, new)])
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "f").read_bytes() == new


@pytest.mark.parametrize("name", ["a b", "a b/c d", "é/ü", "a'b", 'x"y', "a#b", "-x", "a b/new"])
def test_patches_name_files_as_git_does(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if not name.endswith("new"):
        path.write_text("1\n")
    patch = patch_of([(name, None if name.endswith("new") else b"1\n", b"2\n")])
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert path.read_text() == "2\n"


async def test_a_run_changes_no_more_files_than_a_person_can_look_at(tmp_path, monkeypatch):
    monkeypatch.setattr("lyma_server.factory.changes.MOST_FILES", 2)
    desk = desk_with(tmp_path, ("docs/a", "x"), ("docs/b", "x"), ("docs/a", "y"))
    assert (await desk.run(AGENT)).status == "ok"
    desk = desk_with(tmp_path / "more", ("docs/a", "x"), ("docs/b", "x"), ("docs/c", ""))
    assert (await desk.run(AGENT)).status == "refused"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docs/a", "docs/A"),
        ("docs/x/a", "docs/X/b"),
        ("docs/\u00e9", "docs/e\u0301"),
        ("docs/a", "docs/a/b"),
        ("docs/a/b", "docs/a"),
    ],
)
async def test_files_that_cannot_be_beside_each_other_end_the_run(tmp_path, one, other):
    async def life(child):
        await child.hello()
        await child.put(one, "1")
        await child.put(one, "2")
        await child.put(other, "1")
        await child.result({"text": "done"})

    result = await Desk(tmp_path, sandbox=FakeSandbox(life)).run(plain_bundle(files__write=["docs/**"]))
    assert (result.status, result.changes) == ("refused", ())
    assert "cannot be beside" in result.error.message
