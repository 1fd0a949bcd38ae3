"""A folder for a socket: private, short, and removed by the next one when nobody holds it any more."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from lyma_server.errors import ProviderError
from lyma_server.router.providers import socket_folder
from lyma_server.router.providers.socket_folder import PATH_LIMIT, PREFIX, SocketFolder

HOLD = """
from lyma_server.router.providers.socket_folder import SocketFolder
folder = SocketFolder()
(folder.socket).touch()
print(folder.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def base(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def test_it_is_private_and_goes_with_all_that_is_in_it(base: Path) -> None:
    folder = SocketFolder()
    folder.socket.touch()
    assert folder.path.parent == base
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()
    folder.remove()
    assert list(base.iterdir()) == []


def test_a_long_place_is_not_used(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = base / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = SocketFolder()
    folder.remove()
    assert folder.path.parent == Path("/tmp")
    assert len(os.fsencode(folder.socket)) < PATH_LIMIT


def test_one_that_is_held_stays_and_one_whose_holder_was_killed_goes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        held = Path(holder.stdout.readline().strip())
        SocketFolder().remove()
        assert (held / "llama.sock").exists()
        holder.kill()
        holder.wait()
    assert held.exists()
    SocketFolder().remove()
    assert not held.exists()


def test_what_is_not_such_a_folder_of_ours_stays(base: Path) -> None:
    (base / f"{PREFIX}file").touch()
    (base / "elsewhere").mkdir(mode=0o700)
    (base / f"{PREFIX}link").symlink_to(base / "elsewhere")
    (base / f"{PREFIX}open").mkdir(mode=0o755)
    before = sorted(base.iterdir())
    SocketFolder().remove()
    assert sorted(base.iterdir()) == before


def test_many_at_once_never_lose_theirs(base: Path) -> None:
    """Each finds and tidies while the others make theirs."""
    lost = []

    def make() -> None:
        for _ in range(20):
            folder = SocketFolder()
            lost.extend([] if folder.path.is_dir() else [folder.path])
            folder.remove()

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == []
    assert list(base.iterdir()) == []


def test_a_file_system_without_locks_still_has_a_place(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(socket_folder.fcntl, "flock", refuse)
    folder, other = SocketFolder(), SocketFolder()
    assert sorted(base.iterdir()) == sorted((folder.path, other.path))
    folder.remove()
    other.remove()
    assert list(base.iterdir()) == []


def test_no_place_at_all_is_said(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(base / "gone"))
    with pytest.raises(ProviderError, match=r"no place for temporary files \(No such file or directory\); make room"):
        SocketFolder()
