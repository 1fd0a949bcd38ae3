"""What commands leave for the person's own git and editor is told."""

from __future__ import annotations

import os
import subprocess

import pytest

from lyma_server.executor import repositories
from lyma_server.executor.planted import planted


def new(before, workspace):
    return sorted(sentence for sentence, _ in planted(workspace) - before)


@pytest.mark.parametrize("name", [".vscode/tasks.json", ".envrc", ".nvim.lua", ".devcontainer/devcontainer.json"])
def test_a_file_that_an_editor_runs_programs_from(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    before = planted(tmp_path)
    path.write_text("{}")
    assert [name in each for each in new(before, tmp_path)] == [True]
    before = planted(tmp_path)
    assert new(before, tmp_path) == []
    times = path.stat()
    path.write_text("[]")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert new(before, tmp_path), "whatever its time says"


def test_the_hooks_and_settings_of_a_repository_that_was_not_there(tmp_path):
    before = planted(tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "core.fsmonitor", "./x"], check=True)
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-commit.sample").touch()
    (hooks / "post-commit").symlink_to("../../x")
    told = new(before, tmp_path)
    assert ["core.fsmonitor" in told[0], "the hook post-commit " in told[1], len(told)] == [True, True, 2]


def git(*words):
    subprocess.run(["git", *words], check=True, capture_output=True)


def plant(folder):
    """Into the settings of a repository with a checkout, or of one without."""
    git("-C", folder, "config", "core.fsmonitor", "./x")


def told(before, workspace):
    return [sentence.partition("from now on: ")[2] for sentence in new(before, workspace)]


@pytest.mark.parametrize("inner", ["sub", "a/b/c/d", "node_modules/x", ".hidden/sub"])
def test_a_nested_repository(tmp_path, inner):
    git("init", "-q", tmp_path)
    git("init", "-q", tmp_path / inner)
    git("-C", tmp_path / inner, "config", "core.pager", "less")
    before = planted(tmp_path)
    assert told(before, tmp_path) == []
    plant(tmp_path / inner)
    (tmp_path / inner / ".git/hooks").mkdir(exist_ok=True)
    (tmp_path / inner / ".git/hooks/post-checkout").touch()
    where = f"{inner}/.git"
    expected = [f"core.fsmonitor = ./x (in {where}/config).", f"the hook post-checkout (in {where}/hooks)."]
    assert told(before, tmp_path) == expected


def test_a_repository_without_a_checkout(tmp_path):
    git("init", "-q", "--bare", tmp_path / "data")
    before = planted(tmp_path)
    plant(tmp_path / "data")
    assert told(before, tmp_path) == ["core.fsmonitor = ./x (in data/config)."]


def test_a_file_that_leads_to_a_repository(tmp_path):
    git("init", "-q", "--bare", tmp_path / "far/away")
    workspace = tmp_path / "workspace"
    (workspace / "sub").mkdir(parents=True)
    plant(tmp_path / "far/away")
    before = planted(workspace)
    (workspace / "sub/.git").write_text("gitdir: ../../far/away\n")
    assert told(before, workspace) == ["core.fsmonitor = ./x (in ../far/away/config)."]


def test_a_worktree_and_what_it_shares(tmp_path):
    main, other = tmp_path / "main", tmp_path / "other"
    git("init", "-q", main)
    git("-C", main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", main, "worktree", "add", "-q", other)
    before = planted(other)
    plant(other)
    assert told(before, other) == ["core.fsmonitor = ./x (in ../main/.git/config)."]


def test_the_settings_of_a_submodule_are_told_once(tmp_path):
    git("init", "-q", tmp_path)
    (tmp_path / ".git/modules").mkdir()
    git("init", "-q", "--separate-git-dir", tmp_path / ".git/modules/sub", tmp_path / "sub")
    before = planted(tmp_path)
    plant(tmp_path / "sub")
    assert told(before, tmp_path) == ["core.fsmonitor = ./x (in .git/modules/sub/config)."]


def test_what_would_keep_one_waiting_is_not_read(tmp_path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git/config")
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub/.git")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / ".git/config.worktree").symlink_to("/dev/zero")
    assert planted(tmp_path) == frozenset()


def test_a_huge_workspace_is_looked_at_in_part(tmp_path, monkeypatch):
    """What others wrote comes last, however near it is."""
    monkeypatch.setattr(repositories, "MOST_FOLDERS", 20)
    for number in range(30):
        (tmp_path / f"node_modules/package-{number:02}").mkdir(parents=True)
    for inner in ("src/one", "node_modules/package-29"):
        git("init", "-q", tmp_path / inner)
        plant(tmp_path / inner)
    looked_at = []
    look = repositories._look
    monkeypatch.setattr(repositories, "_look", lambda *given: looked_at.append(given) or look(*given))
    assert told(frozenset(), tmp_path) == ["core.fsmonitor = ./x (in src/one/.git/config)."]
    assert len(looked_at) == 20
