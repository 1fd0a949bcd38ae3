"""Where the agent may read and write: a table of hostile paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lyma_server.agent.bounds import (
    Bounds,
    readable_file,
    readable_folder,
    real_path,
    relative,
    user_homes,
    workspace_refusal,
    writable_file,
)
from lyma_server.errors import ToolError


@pytest.fixture
def bounds(tmp_path: Path) -> Bounds:
    """A workspace beside Lyma's home, with links into everything."""
    root, home = tmp_path / "project", tmp_path / ".lyma"
    for folder in (root / ".git" / "hooks", root / "src", root / "sub" / ".git", home):
        folder.mkdir(parents=True)
    (home / "config.toml").write_text("keys")
    (root / "src" / "a.py").write_text("a")
    (root / "to_git").symlink_to(".git")
    (root / "to_home").symlink_to(home)
    (root / "to_config").symlink_to(home / "config.toml")
    (root / "to_src").symlink_to("src")
    (root / "to_a").symlink_to("src/a.py")
    (root / "to_nothing").symlink_to("nothing")
    (root / "to_outside").symlink_to(tmp_path)
    return Bounds(root, home)


NEVER_WRITTEN = [
    "",
    ".",
    "..",
    "a\0b",
    "~/x",
    "~root/x",
    "../x",
    "src/../../x",
    "/etc/passwd",
    "/",
    "{root}/../x",
    "{root}-beside/x",
    ".git",
    ".git/config",
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".Git/hooks/x",
    ".git./config",
    ".git /config",
    ".g\u200cit/config",
    "GIT~1/config",
    "sub/.git/hooks/x",
    "new/.git/hooks/x",
    "src/../.git/config",
    "to_git",
    "to_git/config",
    "to_home/config.toml",
    "to_home/new",
    "to_config",
    "../.lyma/config.toml",
    "{home}/config.toml",
    "{home}",
    "to_src/a.py",
    "to_a",
    "to_nothing",
    "to_outside/x",
    "to_outside/project/src/a.py",
    "/proc/self/environ",
    "/dev/null",
]


@pytest.mark.parametrize("path", NEVER_WRITTEN)
def test_never_written(bounds: Bounds, path: str) -> None:
    with pytest.raises(ToolError):
        writable_file(path.format(root=bounds.root, home=bounds.home), bounds)


@pytest.mark.parametrize(
    "path",
    [
        "x",
        "src/a.py",
        "src/new/b.py",
        ".github/x.yml",
        ".gitignore",
        "src/./../x",
        "to_src/../x",
        "{root}/x",
        ".gitx/y",
    ],
)
def test_written(bounds: Bounds, path: str) -> None:
    expected = os.path.normpath(bounds.root / path.format(root=bounds.root))
    assert str(writable_file(path.format(root=bounds.root), bounds)) == expected


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\0b",
        "~/x",
        "{home}/config.toml",
        "{home}",
        "../.lyma/config.toml",
        "to_home/config.toml",
        "to_config",
        "to_outside/.lyma/state.db",
        "/proc/self/environ",
        "/proc/1/mem",
        "/dev/tty",
        "/sys/kernel/x",
        "src/../../../../../../../../proc/self/environ",
    ],
)
def test_never_read(bounds: Bounds, path: str) -> None:
    with pytest.raises(ToolError):
        readable_file(path.format(home=bounds.home), bounds)


@pytest.mark.parametrize("path", ["own", "own/config.toml", "own/sessions/s.jsonl", "./src/../own/new"])
def test_a_home_inside_the_workspace_is_never_touched(bounds: Bounds, path: str) -> None:
    inside = Bounds(bounds.root, bounds.root / "own")
    for judge in (writable_file, readable_file):
        with pytest.raises(ToolError, match="belongs to Lyma itself"):
            judge(path, inside)


def test_read(bounds: Bounds) -> None:
    assert readable_file("to_a", bounds) == bounds.root / "src" / "a.py"
    assert readable_file("/etc/hostname", bounds) == real_path(Path("/etc/hostname"))
    assert readable_file(".git/config", bounds) == bounds.root / ".git" / "config"


@pytest.mark.parametrize("path", ["/", "..", "{home}", "to_outside", "src/a.py", "none"])
def test_folders_never_looked_through(bounds: Bounds, path: str) -> None:
    with pytest.raises(ToolError):
        readable_folder(path.format(home=bounds.home), bounds)


def test_folders_looked_through(bounds: Bounds) -> None:
    assert readable_folder(".", bounds) == bounds.root
    assert readable_folder("to_src", bounds) == bounds.root / "src"


def test_workspaces_that_are_refused(tmp_path: Path) -> None:
    user, lyma = tmp_path / "user", tmp_path / "user" / ".lyma"
    homes = (user,)
    assert "home folder" in (workspace_refusal(user, tmp_path / "elsewhere", homes) or "")
    assert "home folder" in (workspace_refusal(tmp_path, Path("/elsewhere"), homes) or "")
    assert "does not work in /" in (workspace_refusal(Path("/"), Path("/nowhere/else"), ()) or "")
    assert "own folder" in (workspace_refusal(lyma, lyma, homes) or "")
    for root in (lyma, lyma / "sessions", user, Path("/")):
        assert workspace_refusal(root, lyma, ()) is not None
    assert workspace_refusal(user / "project", lyma, homes) is None


def test_homes_are_known_by_the_environment_and_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert real_path(tmp_path) in user_homes()
    monkeypatch.delenv("HOME")
    assert user_homes()


def test_names_for_people(bounds: Bounds) -> None:
    assert relative(bounds.root / "src" / "a.py", bounds.root) == "src/a.py"
    assert relative(Path("/etc/hosts"), bounds.root) == "/etc/hosts"
    assert relative(Path("/etc/hosts"), Path("/")) == "/etc/hosts"
