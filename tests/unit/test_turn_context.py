"""What goes along with a prompt, and that the person is told of all of it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from lyma_server.agent import context as context_module
from lyma_server.agent.mentions import Mention, mentions
from lyma_server.errors import UsageError
from lyma_server.protocol.events import Notice, TurnStarted
from lyma_server.protocol.messages import (
    ActiveDocument,
    AskContext,
    Diagnostic,
    DocumentVersion,
    FileBlock,
    Position,
    Range,
    TextBlock,
)
from tests.fakes import Desk, answer

if TYPE_CHECKING:
    from pathlib import Path

MENTIONS = [
    ("see @src/a.py.", [Mention("src/a.py")]),
    ("@a.py:3-9, and @b.py:7!", [Mention("a.py", 3, 9), Mention("b.py", 7, 7)]),
    ('@"a b.txt":2-3 and @"c d"', [Mention("a b.txt", 2, 3), Mention("c d")]),
    ("(@a.py) [@b.py]", [Mention("a.py"), Mention("b.py")]),
    ("@a.py @a.py", [Mention("a.py")]),
    ("mail me@example.com or @@x", []),
    ("`@decorator` and a@b", []),
    ("@alice says", [Mention("alice")]),
    ("@ alone @", []),
    ("@C:0-4", [Mention("C:0-4")]),
    ("@../x/日本.md:1", [Mention("../x/日本.md", 1, 1)]),
]


@pytest.mark.parametrize(("prompt", "expected"), MENTIONS)
def test_mentions(prompt: str, expected: list[Mention]) -> None:
    assert list(mentions(prompt)) == expected


def texts(desk: Desk) -> list[str]:
    return [block.text for block in desk.router.requests[0].messages[0].blocks]


def sent(desk: Desk) -> list[tuple[str, int]]:
    body = desk.ears.bodies[0]
    assert isinstance(body, TurnStarted)
    return [(part.what, part.characters) for part in body.sent]


def notices(desk: Desk) -> list[str]:
    return [body.text for body in desk.ears.bodies if isinstance(body, Notice)]


async def test_a_prompt_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."))
    await desk.ask("Hello")
    assert texts(desk) == ["Hello"]
    assert sent(desk) == [("prompt", 5)]


async def test_files_that_the_prompt_names_are_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."), files={"src/a.py": "one\r\ntwo\r\nthree"})
    await desk.ask("What do @src/a.py:2 and @alice say about @none.py?")
    assert texts(desk) == [
        '<file path="src/a.py" lines="2-2">\ntwo\r\n</file>',
        "What do @src/a.py:2 and @alice say about @none.py?",
    ]
    assert notices(desk) == ["There is no file none.py, so only its name was sent."]
    assert [what for what, _ in sent(desk)] == ["file", "prompt"]


async def test_files_that_were_asked_for_are_sent(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, answer("Yes."), files={"a b.txt": "one\ntwo\nthree\n", "a.txt": "only typed prompts are searched"}
    )
    uri = (tmp_path / "work" / "a b.txt").as_uri()
    await desk.ask(
        (TextBlock(text="Look"), FileBlock(uri=uri, first_line=2, last_line=9), TextBlock(text="and @a.txt."))
    )
    assert texts(desk) == ['<file path="a b.txt" lines="2-3">\ntwo\nthree\n</file>', "Look\n\nand @a.txt."]


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (FileBlock(uri="file:///none"), "There is no file /none"),
        (FileBlock(uri="https://example.com"), "not the address of a file"),
        (FileBlock(uri="file:///proc/self/environ"), "not an ordinary file"),
    ],
)
async def test_a_file_that_cannot_be_sent_ends_the_turn(tmp_path: Path, block: FileBlock, complaint: str) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(UsageError, match=complaint):
        await desk.ask((block,))
    assert desk.router.requests == []


async def test_large_files_must_be_asked_for_by_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "LARGEST_FILE", 5)
    desk = Desk(tmp_path, answer("Yes."), files={"a.txt": "one\ntwo\n"})
    await desk.ask("@a.txt")
    assert "name lines, as a.txt:1-200" in notices(desk)[0]
    assert texts(desk) == ["@a.txt"]


async def test_lymas_own_files_are_never_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."))
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    config.write_text("keys")
    await desk.ask(f"@{config}")
    assert texts(desk) == [f"@{config}"]
    assert "belongs to Lyma" in notices(desk)[0]


async def test_the_first_file_of_instructions_is_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."), files={"CLAUDE.md": "Use tabs.\n", ".github/copilot-instructions.md": "No."})
    await desk.ask("Hello")
    instructions = desk.router.requests[0].instructions
    assert "from CLAUDE.md:\n\nUse tabs." in instructions
    assert "No." not in instructions.split("CLAUDE.md")[1]
    assert str(tmp_path / "work") in instructions
    assert sent(desk) == [("instructions", 10), ("prompt", 5)]


async def test_long_instructions_are_cut_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "LARGEST_INSTRUCTIONS", 4)
    desk = Desk(tmp_path, answer("Yes."), files={"AGENTS.md": "12345678"})
    await desk.ask("Hello")
    assert desk.router.requests[0].instructions.endswith("\n\n1234")
    assert "AGENTS.md is long" in notices(desk)[0]


def lines(first: int, last: int, character: int = 0) -> Range:
    return Range(start=Position(line=first, character=0), end=Position(line=last, character=character))


async def test_what_the_editor_shows_is_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."), files={"a.py": "one\ntwo\nthree\n", "b.py": ""})
    uri = {name: (tmp_path / "work" / name).as_uri() for name in ("a.py", "b.py")}
    context = AskContext(
        active=ActiveDocument(uri=uri["a.py"], selections=(lines(1, 2),)),
        documents=(
            DocumentVersion(uri=uri["a.py"]),
            DocumentVersion(uri=uri["b.py"]),
            DocumentVersion(uri="untitled:x"),
        ),
        diagnostics=(Diagnostic(uri=uri["a.py"], range=lines(2, 2, 3), message="bad", severity=2, source="lint"),),
    )
    await desk.ask("Why?", context=context)
    assert texts(desk) == [
        '<selection path="a.py" lines="2-2">\ntwo\n</selection>',
        "<diagnostics>\na.py:3: warning: bad (lint)\n</diagnostics>",
        "<editor>\nActive document: a.py, cursor at line 2\nOpen documents: b.py\n</editor>",
        "Why?",
    ]
    assert [what for what, _ in sent(desk)] == ["selection", "diagnostics", "editor", "prompt"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [(lines(0, 0, 3), "1-1"), (lines(0, 1, 2), "1-2"), (lines(0, 2), "1-2"), (lines(1, 99, 1), "2-3")],
)
async def test_selections_are_sent_by_whole_lines(tmp_path: Path, selection: Range, expected: str) -> None:
    desk = Desk(tmp_path, answer("Yes."), files={"a.py": "one\ntwo\nthree\n"})
    active = ActiveDocument(uri=(tmp_path / "work" / "a.py").as_uri(), selections=(selection,))
    await desk.ask("Why?", context=AskContext(active=active))
    assert f'lines="{expected}"' in texts(desk)[0]


async def test_a_document_that_is_no_file_is_left_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Yes."))
    active = ActiveDocument(uri="untitled:Untitled-1", selections=(lines(0, 1),))
    await desk.ask("Why?", context=AskContext(active=active))
    assert texts(desk) == ["Why?"]
    assert notices(desk) == []


async def test_a_prompt_of_10_mib(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Long."))
    prompt = "words and even more " * (10 * 1024 * 1024 // 20)
    assert (await desk.ask(prompt)).text == "Long."
    assert texts(desk) == [prompt]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "topic")
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@b.c")
    (work / "old name.txt").write_text("one\n" * 9)
    (work / "kept.txt").write_text("x\n")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "first")
    return work


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


async def told_of_git(tmp_path: Path, **params: object) -> str | None:
    desk = Desk(tmp_path, answer("Yes."))
    await desk.ask("Hello", **params)
    found = [text for text in texts(desk) if text.startswith("<git>")]
    assert bool(found) == ("git" in dict(sent(desk)))
    return found[0] if found else None


async def test_the_branch_and_what_has_changed_are_sent(tmp_path: Path, repository: Path) -> None:
    git(repository, "mv", "old name.txt", "new name.txt")
    (repository / "kept.txt").write_text("y\n")
    (repository / "日本.txt").write_text("")
    assert await told_of_git(tmp_path, tools=False) == (
        "<git>\ntopic\n M kept.txt\nR  new name.txt <- old name.txt\n?? 日本.txt\n</git>"
    )


async def test_many_changes_are_counted(tmp_path: Path, repository: Path) -> None:
    for number in range(60):
        (repository / f"{number}.txt").write_text("")
    told = await told_of_git(tmp_path)
    assert told is not None
    assert told.count("?? ") == 50
    assert "and 10 more" in told


async def test_a_repository_that_would_run_a_program_is_not_asked(tmp_path: Path, repository: Path) -> None:
    marker = tmp_path / "ran"
    (repository / ".gitattributes").write_text("*.txt filter=x\n")
    git(repository, "config", "filter.x.clean", f"touch {marker}; cat")
    (repository / "kept.txt").write_text("y\n")
    assert await told_of_git(tmp_path) == "<git>\ntopic\n</git>"
    assert not marker.exists()


async def test_a_monitor_is_never_started(tmp_path: Path, repository: Path) -> None:
    marker = tmp_path / "ran"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {marker}\n")
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    assert await told_of_git(tmp_path) == "<git>\ntopic\n</git>"
    assert not marker.exists()


async def test_a_worktree_has_its_own_branch(tmp_path: Path, repository: Path) -> None:
    repository.rename(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "-q", "-b", "side", str(repository))
    assert await told_of_git(tmp_path) == "<git>\nside\n</git>"
    git(tmp_path / "main", "config", "filter.x.clean", "cat")
    (repository / "new.txt").write_text("")
    assert await told_of_git(tmp_path) == "<git>\nside\n</git>"


async def test_no_repository_is_not_told_of(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert await told_of_git(tmp_path) is None


async def test_a_home_is_no_project(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repository))
    (repository / "AGENTS.md").write_text("Be loud.")
    assert await told_of_git(tmp_path, tools=False) is None


async def test_a_repository_that_holds_the_home_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    git(tmp_path, "init", "-q")
    assert await told_of_git(tmp_path) is None


async def test_only_what_changed_in_the_workspace_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    git(tmp_path, "init", "-q", "-b", "topic")
    (tmp_path / "outside.txt").write_text("")
    (tmp_path / "work" / "inside.txt").write_text("")
    told = await told_of_git(tmp_path)
    assert told is not None
    assert "work/" in told
    assert "outside" not in told
