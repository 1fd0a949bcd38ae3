"""Which settings of a repository make git run a program."""

from __future__ import annotations

import subprocess

import pytest

from lyma_server.executor.git_settings import program_settings, settings

RUNS = (
    "core.fsmonitor=./x", "core.hooksPath=hooks", "core.sshCommand=./ssh", "core.pager=./p", "alias.st=!rm", "filter.lfs.clean=./c",
    "filter.a b.process=./p", "diff.pdf.textconv=./t", "merge.ours.driver=./m", "credential.helper=./h", "credential.https://x.helper=!h",
    "gpg.program=./g", "gpg.ssh.program=./g", "include.path=../more", "pager.log=./p", "sequence.editor=./e", "remote.origin.uploadpack=./u",
)  # fmt: skip
DOES_NOT = (
    "core.fsmonitor=true", "core.bare=false", "user.name=core.pager", "alias.st=status", "remote.origin.url=./x", "branch.main.remote=origin",
    "pull.rebase=true", "diff.renames=true", "core.autocrlf=input",
)  # fmt: skip


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize(("setting", "runs"), [*((each, True) for each in RUNS), *((each, False) for each in DOES_NOT)])
def test_what_git_writes_is_recognised(repository, setting, runs):
    before = program_settings(repository / ".git")
    key, _, value = setting.partition("=")
    subprocess.run(["git", "-C", repository, "config", key, value], check=True)
    assert bool(program_settings(repository / ".git") - before) is runs


def test_the_file_is_read_as_git_reads_it(repository):
    text = '[Core]\n\tPager = a\\\nb ; c\n[alias] x = "!y"\n[filter "A.b"]\nCLEAN=c\n# [core] editor=x\n'
    assert dict(settings(text)) == {"core.pager": "ab ; c", "alias.x": '"!y"', "filter.A.b.clean": "c"}


def test_no_repository_has_none(tmp_path):
    assert program_settings(tmp_path) == frozenset()
