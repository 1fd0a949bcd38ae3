"""Files named beside a prompt and in it."""

from __future__ import annotations

import pytest

from lyma_server.errors import UsageError
from lyma_server.protocol.messages import FileBlock, TextBlock
from lyma_server.terminal.attach import content_of, named_file


@pytest.fixture
def folder(tmp_path):
    for name in ("a.py", "b c.txt", "odd:3"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/d.md").write_text("x\n")
    return tmp_path


def block(folder, name, *lines):
    return FileBlock(uri=(folder / name).as_uri(), **dict(zip(("first_line", "last_line"), lines, strict=False)))


@pytest.mark.parametrize(
    ("reference", "name", "lines"),
    [
        ("a.py", "a.py", ()),
        ("a.py:3-9", "a.py", (3, 9)),
        ("a.py:3", "a.py", (3, 3)),
        ("b c.txt:1-1", "b c.txt", (1, 1)),
        ("odd:3", "odd:3", ()),
        ("./sub/d.md", "sub/d.md", ()),
    ],
)
def test_a_file_is_named_whole_or_by_lines(folder, reference, name, lines):
    assert named_file(reference, folder) == block(folder, name, *lines)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nope.py", "There is no file nope.py"),
        ("nope.py:1-2", "There is no file nope.py:1-2"),
        ("sub", "sub is a folder"),
        ("a.py:9-3", "asks for lines 9 to 3"),
        ("a.py:0", "asks for lines 0 to 0"),
        ("a\0b", "There is no file"),
        ("x" * 5000, "There is no file"),
    ],
)
def test_what_is_not_there_is_said(folder, reference, message):
    with pytest.raises(UsageError, match=message) as caught:
        named_file(reference, folder)
    assert caught.value.exit_code == 2


def test_only_what_was_typed_mentions_files(folder):
    typed = "compare @a.py:1-2, @sub/d.md. and (no @nothing.py, no me@a.py) @a.py:1-2"
    piped = "+@a.py:2-2 @sub/d.md"
    texts = (TextBlock(text=typed), TextBlock(text=piped))
    files = (block(folder, "a.py", 1, 2), block(folder, "sub/d.md"))
    assert content_of(typed, piped, [], folder) == (*texts, *files)


def test_a_link_is_followed_since_the_user_named_it(folder):
    (folder / "link.py").symlink_to(folder / "a.py")
    assert named_file("link.py", folder) == block(folder, "a.py")


def test_a_typed_prompt_alone_is_left_to_the_agent(folder):
    one = block(folder, "a.py")
    assert content_of("hi @a.py", "\n", [], folder) == "hi @a.py"
    assert content_of("", "hi", [], folder) == (TextBlock(text="hi"),)
    assert content_of("hi", "", [one, one], folder) == (TextBlock(text="hi"), one)
