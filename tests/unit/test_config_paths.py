"""The home: where it is, and that it is the user's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lyma_server.config.paths import Home
from lyma_server.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"HOME": "/h"}, "/h/.lyma"),
        ({"HOME": "/h", "LYMA_HOME": ""}, "/h/.lyma"),
        ({"HOME": "/h", "LYMA_HOME": "/x/y"}, "/x/y"),
        ({"HOME": "/h", "LYMA_HOME": "~/y"}, "/h/y"),
    ],
)
def test_the_home_is_found(environ, root):
    assert Home.find(environ).root == Path(root)


def test_without_a_home_in_the_environment_the_account_has_one():
    assert Home.find({}).root.is_absolute()


def test_a_relative_home_is_refused():
    with pytest.raises(ConfigError, match="LYMA_HOME is x/y; it must be an absolute path"):
        Home.find({"HOME": "/h", "LYMA_HOME": "x/y"})


def test_everything_is_inside_the_home():
    home = Home(Path("/h"))
    inside = {name: getattr(home, name) for name in dir(home) if isinstance(getattr(home, name), Path)}
    assert len(inside) >= 10
    assert all(path == home.root or path.parent == home.root for path in inside.values())


def test_the_home_is_made_for_its_owner_alone_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        Home(tmp_path / "a" / "b").ensure()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_home_that_others_may_enter_is_closed(tmp_path):
    tmp_path.chmod(0o755)
    Home(tmp_path).ensure()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be created .*; set LYMA_HOME to a folder that can"):
        Home(tmp_path / "file" / "home").ensure()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give a folder away")
def test_a_home_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        Home(tmp_path).ensure()


@pytest.mark.parametrize("root", ["/", "/usr/..", "//"])
def test_the_root_of_the_system_is_never_closed_to_others(monkeypatch, root):
    closed = []
    monkeypatch.setattr(Path, "chmod", lambda path, mode: closed.append(path))
    with pytest.raises(ConfigError, match="cannot be Lyma's home"):
        Home(Path(root)).ensure()
    assert closed == []
