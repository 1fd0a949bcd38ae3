"""The same rules at the moment of execve: real words, a real path, a real folder, and no program text."""

from __future__ import annotations

import statistics
import time

import pytest

from lyma_server.executor import shell
from lyma_server.executor.verdict import judge_exec
from tests.commands import HOME, LYMA_HOME, WORKSPACE

FACTS = {"home": HOME, "workspace": WORKSPACE, "lyma_home": LYMA_HOME}


def verdict(path, *argv, cwd=WORKSPACE, **more):
    return judge_exec(path, argv, cwd, **{**FACTS, **more}).verdict


BLOCKED = [
    ("/bin/rm", "rm", "-rf", "/"), ("/bin/rm", "x", "-rf", "/home/dev"), ("/usr/bin/rm", "rm", "-r", "-f", "/etc", "build"), ("/bin/rm", "rm", "-rf", "/bin", "/boot"),
    ("/usr/bin/find", "find", "/", "-delete"), ("/bin/busybox", "busybox", "rm", "-rf", "/"), ("/bin/busybox", "rm", "-rf", "/"), ("/bin/dd", "dd", "of=/dev/sda"),
    ("/lib64/ld-linux-x86-64.so.2", "ld.so", "--library-path", "/x", "/bin/rm", "-rf", "/"), ("/usr/bin/coreutils", "coreutils", "--coreutils-prog=rm", "-rf", "/"),
    ("/sbin/shutdown", "shutdown", "now"), ("/bin/kill", "kill", "-9", "1"), ("/bin/cat", "cat", "/etc/shadow"), ("/bin/cat", "cat", "/home/dev/.lyma/config.toml"),
    ("/usr/bin/tee", "tee", "-a", "/home/dev/.ssh/authorized_keys"), ("/usr/bin/lyma", "lyma", "approve", "x"), ("/usr/bin/nc", "nc", "-e", "/bin/sh", "h", "1"),
    ("/bin/mv", "mv", "/home/dev/app", "/tmp/x"), ("/usr/bin/chmod", "chmod", "-R", "777", "/usr"), ("/usr/bin/terraform", "terraform", "destroy"),
]  # fmt: skip
ALLOWED = [
    ("/bin/rm", "rm", "-rf", "build"), ("/bin/rm", "rm", "-rf", "/tmp/x"), ("/bin/rm", "rm", "-f", "/etc/apt/x.list"), ("/bin/ls", "ls", "/"), ("/bin/cat", "cat", "/etc/passwd"),
    ("/usr/bin/git", "git", "commit", "-m", "rm -rf /"), ("/bin/sh", "sh", "-c", "rm -rf /"), ("/usr/bin/python3", "python3", "-c", "import os; os.system('rm -rf /')"),
    ("/usr/bin/find", "find", ".", "-name", "*.pyc", "-delete"), ("/bin/busybox", "busybox", "ls"), ("/bin/kill", "kill", "42"), ("/usr/bin/terraform", "terraform", "plan"),
    ("/bin/echo", "echo", "rm", "-rf", "/"), ("/usr/bin/grep", "grep", "-r", "rm -rf /", "."),
]  # fmt: skip


@pytest.mark.parametrize("call", BLOCKED, ids=" ".join)
def test_a_forbidden_program_is_refused(call):
    assert verdict(*call) == "block"


@pytest.mark.parametrize("call", ALLOWED, ids=" ".join)
def test_an_ordinary_program_goes_on(call):
    assert verdict(*call) == "allow"


def test_a_name_with_pattern_characters_is_only_a_name():
    """At execve nothing is expanded any more."""
    assert verdict("/bin/rm", "rm", "-rf", "/*") == "allow"
    assert verdict("/bin/rm", "rm", "-rf", "*") == "allow"


def test_a_tool_is_known_by_its_identity():
    assert verdict("/tmp/innocent", "innocent", "-rf", "/") == "allow"
    assert verdict("/tmp/innocent", "innocent", "-rf", "/", tool="rm") == "block"


def test_links_on_the_disk_are_followed(tmp_path):
    home = tmp_path / "home" / "me"
    workspace = home / "project"
    workspace.mkdir(parents=True)
    (workspace / "link").symlink_to(home)
    (workspace / "build").mkdir()
    (workspace / "inside").symlink_to(workspace / "build")
    facts = {"home": str(home), "workspace": str(workspace), "lyma_home": str(home / ".lyma"), "cwd": str(workspace)}
    assert verdict("/bin/rm", "rm", "-rf", "link", **facts) == "block"
    assert verdict("/bin/rm", "rm", "-rf", "link/", **facts) == "block"
    assert verdict("/bin/rm", "rm", "-rf", "inside", **facts) == "allow"
    assert verdict("/bin/rm", "rm", "-rf", "link/project/build", **facts) == "allow"


def test_no_program_text_is_read(monkeypatch):
    def fail(*_args, **_more):
        raise AssertionError("program text was read")

    monkeypatch.setattr(shell, "parse", fail)
    monkeypatch.setattr(shell, "_run_shfmt", fail)
    assert verdict("/bin/bash", "bash", "-c", "rm -rf /") == "allow"
    assert verdict("/usr/bin/perl", "perl", "-e", 'system("rm -rf /")') == "allow"


@pytest.mark.parametrize(
    "argv",
    [(), ("",), ("rm",), ("rm", ""), ("\udcff", "\udcfe"), ("rm", "-rf", "\udcff"), ("x" * 100_000,), ("a",) * 5000],
)
def test_any_words_get_an_answer(argv):
    assert verdict("/bin/rm", *argv) in ("allow", "block")
    assert verdict("", *argv) in ("allow", "block")


def test_it_takes_no_time():
    times = []
    for call in (*BLOCKED, *ALLOWED) * 5:
        start = time.perf_counter()
        verdict(*call)
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.0005  # 0.05 ms on a quiet machine; the benchmark holds the real figure
