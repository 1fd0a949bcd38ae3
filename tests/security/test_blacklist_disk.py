"""What lies on the disk counts: links, scripts, and the names of all that is in a folder."""

from __future__ import annotations

import os

import pytest

from lyma_server.executor.verdict import judge, judge_exec


@pytest.fixture
def place(tmp_path):
    """A home with a workspace that holds a few files."""
    home = tmp_path / "home" / "me"
    workspace = home / "project"
    for name in ("src", "docs", "build", "tests"):
        (workspace / name).mkdir(parents=True)
    (home / "Documents").mkdir()
    return home, workspace


@pytest.fixture
def verdict(place):
    home, workspace = place

    def judged(command, **env):
        return judge(command, cwd=str(workspace), home=str(home), workspace=str(workspace), env=env).verdict

    return judged


def script(workspace, text, name="run.sh"):
    path = workspace / name
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("target", ["", "/Documents"])
def test_a_link_is_its_target(place, verdict, target):
    home, workspace = place
    (workspace / "link").symlink_to(f"{home}{target}")
    assert verdict("rm -rf link") == "block"
    assert verdict("rm -rf link/*") == "block"
    assert verdict("cd link && rm -rf *") == "block"
    assert verdict("chmod -R 777 link/") == "block"


def test_a_link_that_stays_inside_is_allowed(place, verdict):
    _, workspace = place
    (workspace / "link").symlink_to(workspace / "build")
    assert verdict("rm -rf link/*") == "allow"


def test_a_link_to_a_secret_is_the_secret(place, verdict):
    home, workspace = place
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("k")
    (workspace / "notes.txt").symlink_to(home / ".ssh" / "id_rsa")
    assert verdict("cat notes.txt") == "block"
    assert verdict("cat src/main.c") == "allow"


@pytest.mark.parametrize(
    "start",
    [
        "bash run.sh",
        "./run.sh",
        "sh ./run.sh x",
        "source run.sh",
        ". ./run.sh",
        "sudo bash run.sh",
        "cd src && ../run.sh",
    ],
)
def test_a_script_is_read_before_it_runs(place, verdict, start):
    _, workspace = place
    script(workspace, "#!/bin/sh\nset -e\nrm -rf ~\n")
    assert verdict(start) == "block"
    script(workspace, '#!/bin/sh\nset -e\nnpm ci\nrm -rf build "$OUT"/*\n')
    assert verdict(start) == "allow"


def test_a_script_that_runs_another_is_followed(place, verdict):
    _, workspace = place
    script(workspace, "./inner.sh\n")
    script(workspace, "x=/\nrm -rf $x\n", "inner.sh")
    assert verdict("./run.sh") == "block"
    script(workspace, "./run.sh\n", "inner.sh")
    assert verdict("./run.sh") == "allow"


@pytest.mark.parametrize(
    "text",
    ["if then (", "#!/usr/bin/env python3\nimport os\n", "\0\1\2", "x" * 100_000, "while :; do :; done\n" * 900, ""],
)
def test_a_script_that_cannot_be_followed_is_left_to_the_guard(place, verdict, text):
    _, workspace = place
    script(workspace, text)
    assert verdict("bash run.sh; ./run.sh") == "allow"
    assert verdict("bash run.sh; rm -rf ~") == "block"


def test_only_regular_files_are_read(place, verdict):
    _, workspace = place
    os.mkfifo(workspace / "pipe.sh")
    assert verdict("bash pipe.sh") == "allow"
    assert verdict("bash src") == "allow"
    assert verdict("bash missing.sh") == "allow"


def test_what_a_sourced_script_sets_is_known(place, verdict):
    _, workspace = place
    script(workspace, "TARGET=/\nSAFE=build\n", "settings.sh")
    assert verdict('. ./settings.sh; rm -rf "$TARGET"') == "block"
    assert verdict('. ./settings.sh; rm -rf "$SAFE"/*') == "allow"


def test_all_children_by_name_are_the_whole(place):
    home, workspace = place
    facts = {"home": str(home), "workspace": str(workspace), "lyma_home": str(home / ".lyma")}

    def verdict(*names):
        return judge_exec("/bin/rm", ("rm", "-rf", *names), str(workspace), **facts).verdict

    assert verdict("build", "docs", "src", "tests") == "block"
    assert verdict("./tests", "build/", "docs", "src", "more") == "block"
    assert verdict("build", "docs", "src") == "allow"
