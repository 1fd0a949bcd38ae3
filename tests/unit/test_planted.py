"""What commands leave for the person's own git and editor is told."""

from __future__ import annotations

import os
import subprocess

import pytest

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
