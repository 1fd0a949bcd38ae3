"""Files on the disk: nothing is followed, nothing is lost, everything else is kept."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING

import pytest

from lyma_server.agent import disk, files
from lyma_server.agent.disk import DiskWorkspace
from lyma_server.agent.ports import FileChange, FileMissing
from lyma_server.errors import EditConflict, LymaError, ToolError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("outside")
    return folder


async def change(root: Path, name: str, text: str | None, base: str | None) -> None:
    await DiskWorkspace(root).apply(FileChange(root / name, text, base))


async def base_of(path: Path) -> str:
    return (await DiskWorkspace(path.parent).read(path)).base


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"plain\n", "utf-8"),
        ("ä\r\nö\r\n".encode(), "utf-8"),
        (b"\xef\xbb\xbfmarked\r\n", "utf-8-sig"),
        ("\ufeffwide ä".encode("utf-16-le"), "utf-16-le"),
        ("\ufeffwide ä".encode("utf-16-be"), "utf-16-be"),
        (b"", "utf-8"),
    ],
)
async def test_encoding_marks_and_line_ends_are_kept(root: Path, data: bytes, encoding: str) -> None:
    path = root / "a.txt"
    path.write_bytes(data)
    workspace = DiskWorkspace(root)
    file = await workspace.read(path)
    assert file.encoding == encoding
    assert not file.text.startswith("\ufeff")
    await workspace.apply(FileChange(path, file.text + "new", file.base))
    wide = "utf-16-le" if encoding == "utf-16-le" else "utf-16-be" if encoding == "utf-16-be" else "utf-8"
    assert path.read_bytes() == data + "new".encode(wide)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4755])
async def test_the_mode_is_kept(root: Path, mode: int) -> None:
    path = root / "a.sh"
    path.write_text("old")
    path.chmod(mode)
    await change(root, "a.sh", "new", await base_of(path))
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (mode, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_the_owner_is_kept(root: Path) -> None:
    path = root / "a.txt"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    await change(root, "a.txt", "new", await base_of(path))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


async def test_a_new_file_gets_its_folders(root: Path) -> None:
    await change(root, "a/b/c.txt", "new", None)
    assert (root / "a/b/c.txt").read_text() == "new"
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["c.txt"]


@pytest.mark.parametrize("text", ["new", None])
async def test_what_changed_meanwhile_is_not_touched(root: Path, text: str | None) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await base_of(path)
    path.write_text("somebody else's")
    with pytest.raises(EditConflict, match="has changed"):
        await change(root, "a.txt", text, base)
    assert path.read_text() == "somebody else's"
    assert list(root.iterdir()) == [path]


async def test_a_file_that_appeared_or_vanished_meanwhile_is_a_conflict(root: Path) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await base_of(path)
    with pytest.raises(EditConflict):
        await change(root, "a.txt", "new", None)
    path.unlink()
    for text in ("new", None):
        with pytest.raises(EditConflict):
            await change(root, "a.txt", text, base)
    assert list(root.iterdir()) == []


async def test_one_that_appears_at_the_last_moment_is_not_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a.txt"
    put = files._put

    def late(*arguments, **options) -> None:
        path.write_text("somebody else's")
        put(*arguments, **options)

    monkeypatch.setattr(files, "_put", late)
    with pytest.raises(EditConflict):
        await change(root, "a.txt", "new", None)
    assert path.read_text() == "somebody else's"
    assert list(root.iterdir()) == [path]


async def test_one_that_changes_at_the_last_moment_is_not_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await base_of(path)
    write = files._write_draft

    def meanwhile(*arguments) -> None:
        write(*arguments)
        path.write_text("somebody else's")

    monkeypatch.setattr(files, "_write_draft", meanwhile)
    with pytest.raises(EditConflict):
        await change(root, "a.txt", "new", base)
    assert path.read_text() == "somebody else's"


async def test_deleting(root: Path) -> None:
    path = root / "a.txt"
    path.write_text("old")
    await change(root, "a.txt", None, await base_of(path))
    assert not path.exists()


HOSTILE = {
    "a link to a file": ("link", lambda root: (root / "link").symlink_to("../outside/secret.txt")),
    "a link to nothing": ("link", lambda root: (root / "link").symlink_to("../outside/new.txt")),
    "a link to a folder": ("link/secret.txt", lambda root: (root / "link").symlink_to("../outside")),
    "a link that circles": ("link", lambda root: (root / "link").symlink_to("link")),
    "a folder": ("folder", lambda root: (root / "folder").mkdir()),
    "a pipe": ("pipe", lambda root: os.mkfifo(root / "pipe")),
    "below a file": ("file/x", lambda root: (root / "file").write_text("")),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_links_and_odd_files_are_neither_read_nor_written(root: Path, case: str) -> None:
    name, make = HOSTILE[case]
    make(root)
    with pytest.raises(ToolError):
        await DiskWorkspace(root).read(root / name)
    for base in (None, "sha256:0"):
        with pytest.raises(LymaError):
            await change(root, name, "hacked", base)
    with pytest.raises(LymaError):
        await change(root, name, None, "sha256:0")
    assert {path.name: path.read_text() for path in root.parent.joinpath("outside").iterdir()} == {
        "secret.txt": "outside"
    }


async def test_a_folder_that_becomes_a_link_after_it_was_judged_is_not_followed(root: Path) -> None:
    (root / "folder").mkdir()
    path = root / "folder" / "secret.txt"
    path.write_text("inside")
    base = await base_of(path)
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to("../outside")
    with pytest.raises(LymaError):
        await change(root, "folder/secret.txt", "hacked", base)
    with pytest.raises(ToolError, match="link"):
        await DiskWorkspace(root).read(path)
    assert (root.parent / "outside" / "secret.txt").read_text() == "outside"


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe\xff", b"caf\xe9", "\ufeffx".encode("utf-32-le")])
async def test_what_is_no_text_is_an_error_for_the_model(root: Path, data: bytes) -> None:
    (root / "a").write_bytes(data)
    with pytest.raises(ToolError, match="not a text"):
        await DiskWorkspace(root).read(root / "a")


async def test_sizes_are_capped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LARGEST_FILE", 10)
    (root / "a").write_bytes(b"x" * 11)
    with pytest.raises(ToolError, match="more than"):
        await DiskWorkspace(root).read(root / "a")
    with pytest.raises(ToolError, match="at most 10"):
        await change(root, "b", "x" * 11, None)


async def test_outside_of_the_workspace_nothing_is_changed(root: Path) -> None:
    for workspace in (DiskWorkspace(root), DiskWorkspace(None)):
        with pytest.raises(ToolError, match="outside"):
            await workspace.apply(FileChange(root.parent / "outside" / "new.txt", "x", None))


async def test_missing_files_are_told_apart(root: Path) -> None:
    with pytest.raises(FileMissing, match="There is no file"):
        await DiskWorkspace(root).read(root / "none" / "a.txt")


async def test_a_text_with_half_a_character_is_not_written(root: Path) -> None:
    with pytest.raises(ToolError, match="half of a character"):
        await change(root, "a.txt", "\ud83d", None)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["http://example.com/a", "untitled:Untitled-1", "file://host/a", "file:a", "file:///a%00b"]
)
def test_other_addresses_are_refused(root: Path, uri: str) -> None:
    with pytest.raises(UsageError):
        DiskWorkspace(root).path(uri)


def test_addresses_and_paths_turn_into_each_other(root: Path) -> None:
    workspace = DiskWorkspace(root)
    for name in ("a b.txt", "ä%.txt", "日本#?.txt"):
        assert workspace.path(workspace.uri(root / name)) == root / name


async def test_a_write_that_has_begun_is_finished_though_the_turn_is_stopped(root: Path) -> None:
    task = asyncio.create_task(change(root, "a.txt", "new", None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {path.name for path in root.iterdir()} <= {"a.txt"}


async def test_a_full_disk_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await base_of(path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        await change(root, "a.txt", "new", base)
    assert path.read_text() == "old"
    assert list(root.iterdir()) == [path]
