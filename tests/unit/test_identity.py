"""Which tool a file is, whatever it is called."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from lyma_server.executor.exec_judge import ExecJudge, KnownFolders, Place, is_loader, known_folders
from lyma_server.executor.identity import Identities, Unrecognisable
from lyma_server.isolation.exec_request import ExecRequest, head_of
from lyma_server.isolation.sight import Sight

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs O_PATH")
RM = shutil.which("rm", path="/usr/bin:/bin")


@pytest.fixture(scope="module")
def identities():
    return Identities()


@contextmanager
def asked(path, *argv, cwd="/"):
    file, root = os.open(path, os.O_PATH), os.open("/", os.O_PATH)
    status = os.fstat(file)
    yield ExecRequest(
        1, str(path), argv or (Path(path).name,), cwd, file, status, Sight(1, root), head_of(file, status)
    )
    os.close(file)
    os.close(root)


def copied(folder: Path, more: bytes = b"") -> Path:
    copy = folder / "harmless"
    shutil.copy(RM, copy)
    with copy.open("ab") as file:
        file.write(more)
    return copy


def test_a_tool_a_link_and_a_copy_are_the_same_tool(identities, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(RM)
    for path in (RM, link, copied(tmp_path), copied(tmp_path, b"more")):
        with asked(path, "x", "-rf", "/") as request:
            assert identities.name(request) == "rm"


def test_a_copy_without_a_build_is_known_by_its_content(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "rm").write_bytes(b"\x7fELF" + bytes(500))
    (tmp_path / "copy").write_bytes(b"\x7fELF" + bytes(500))
    (tmp_path / "other").write_bytes(b"\x7fELF" + bytes(499) + b"x")
    identities = Identities([str(tools)])
    for name, tool in (("copy", "rm"), ("other", None)):
        with asked(tmp_path / name) as request:
            assert identities.name(request) == tool


def test_a_file_of_many_names_is_the_one_that_it_is_called_by(tmp_path):
    (tmp_path / "pgrep").write_bytes(b"\x7fELF" + bytes(60))
    (tmp_path / "pkill").symlink_to("pgrep")
    (tmp_path / "busybox").write_bytes(b"\x7fELF" + bytes(70))
    (tmp_path / "sh").hardlink_to(tmp_path / "busybox")
    identities = Identities([str(tmp_path)])
    for path, word, tool in (
        ("pgrep", "/x/pkill", "pkill"),
        ("pkill", "odd", "pkill"),
        ("busybox", "odd", "busybox"),
        ("sh", "-sh", "sh"),
    ):
        with asked(tmp_path / path, word) as request:
            assert identities.name(request) == tool


def test_a_program_that_nobody_may_read_may_be_any(identities, tmp_path):
    with asked(copied(tmp_path), "x", "-rf", "/home") as request:
        hidden = request._replace(cwd="/", head=None)
        with pytest.raises(Unrecognisable):
            identities.name(hidden)
        judge = ExecJudge(Place("/home/dev", "/home/dev/app", "/home/dev/.lyma"), identities)
        assert judge(hidden).rule == "fs-wipe"
        benign = hidden._replace(argv=("x", "-rf", "build"), cwd="/home/dev/app")
        assert judge(benign) is None


def test_loaders_are_known(identities):
    assert is_loader("ld-linux-x86-64.so.2")
    assert is_loader("ld-musl-aarch64.so.1")
    assert not is_loader("ld")
    assert not is_loader(None)


def test_strangers_are_nobody(identities):
    with asked(Path(__file__)) as request:
        assert identities.name(request) is None


def test_many_tools_in_one_are_known_wherever_they_come_from(identities, tmp_path):
    for content, tool in ((b"BusyBox v1.35.0 (x)", "busybox"), (b"\0toybox 0.8", "toybox"), (b"busybox", None)):
        (tmp_path / "fetched").write_bytes(b"\x7fELF" + bytes(100) + content)
        with asked(tmp_path / "fetched", "busyboxes", "rm", "-rf", "/home") as request:
            assert identities.name(request) == tool
            judge = ExecJudge(Place("/home/dev", "/home/dev/app", "/home/dev/.lyma"), identities)
            assert (judge(request) is None) is (tool is None)


def test_a_tool_that_was_overwritten_is_what_it_is_now(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, content in (("rm", b"\x7fELF" + bytes(500)), ("true", b"\x7fELF" + bytes(499) + b"t")):
        (tools / name).write_bytes(content)
    identities = Identities([str(tools)])
    before = (tools / "true").stat().st_ctime_ns
    while (tools / "true").stat().st_ctime_ns == before:  # within one tick of its clock it does not show
        (tools / "true").write_bytes((tools / "rm").read_bytes())
    for name in ("rm", "true"):
        with asked(tools / name) as request:
            assert identities.name(request) == "rm"


def test_a_program_that_changes_through_an_old_mapping_is_seen(identities, tmp_path):
    """The kernel writes down no change to a page that is dirty already."""
    stranger, wanted = tmp_path / "stranger", Path(RM).read_bytes()
    stranger.write_bytes(b"\x7fELF" + bytes(len(wanted) - 4))
    with stranger.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = b"\x7fELF" + bytes(len(wanted) - 4)
        with asked(stranger) as request:
            assert identities.name(request) is None
        before = stranger.stat()
        memory[:] = wanted
        with asked(stranger) as request:
            assert (request.status.st_ctime_ns, request.status.st_size) == (before.st_ctime_ns, before.st_size)
            assert identities.name(request) == "rm"


def test_a_workspace_that_became_a_link_gives_its_name_to_nothing(tmp_path):
    home, workspace = tmp_path / "home", tmp_path / "home" / "app"
    lyma_home = home / ".lyma"
    for folder in (workspace, lyma_home / "keys", home / ".ssh"):
        folder.mkdir(parents=True)
    place = Place(str(home), str(workspace), str(lyma_home))
    judge = ExecJudge(place, Identities())
    workspace.rename(home / "old")
    for target, words in ((lyma_home, ("rm", "-rf", f"{workspace}/keys")), (home, ("rm", "-rf", f"{workspace}/.ssh"))):
        workspace.unlink(missing_ok=True)
        workspace.symlink_to(target)
        with asked(RM, *words) as request:
            assert judge(request) is not None


def test_what_must_not_be_lost_is_known_by_its_number_and_looked_at_only_as_far_as_needed(tmp_path, monkeypatch):
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    folders = known_folders(Place(str(home), str(workspace), str(home / ".lyma")))
    assert folders[:3] == (str(home / ".lyma"), str(home), str(workspace))
    assert folders[-1] == "/"
    looked: list[str] = []
    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looked.append(path) or lstat(path))
    known = KnownFolders(folders)
    for folder in (home, workspace, tmp_path, "/"):
        status = lstat(folder)
        assert known((status.st_dev, status.st_ino)) == str(folder)
        assert looked[-1] == str(folder)
    status = lstat(__file__)
    assert known((status.st_dev, status.st_ino)) is None
    assert looked == list(folders)
