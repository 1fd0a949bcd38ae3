"""docs/fixed.md lists what the code holds, no more and no less, where the code holds a list."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path

import attrs
import pytest

from lyma_server.config.model import ExecutorSettings, Settings
from lyma_server.errors import ConfigError
from lyma_server.executor import blacklist, characters, environment, run, shell, verdict
from lyma_server.isolation import bwrap, grants
from lyma_server.isolation.confinement import Surroundings, confine
from lyma_server.isolation.landlock import READ, WRITE, Right

PAGE = (Path(__file__).resolve().parents[2] / "docs/fixed.md").read_text(encoding="utf-8")
HOME = Path("/home/dev")
AROUND = Surroundings(
    user_home=HOME,
    lyma_homes=(HOME / ".lyma",),
    workspace=HOME / "app",
    hidden_sockets=(HOME / "docker.sock",),
)


def table(title: str) -> list[list[str]]:
    """The cells of the table whose first column is called `title`."""
    lines = PAGE[PAGE.index(f"| {title} |") :].splitlines()
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in list(rows)[2:]]


def names(title: str) -> list[str]:
    return [name for row in table(title) for name in re.findall(r"`([^`]+)`", row[0])]


def test_every_row_has_a_reason():
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    for row in rows:
        assert len(row) == 2, row
        assert all(cell.strip() for cell in row), row


def test_the_rules_of_the_blacklist():
    assert names("rule") == list(dict.fromkeys(names("rule")))
    assert set(names("rule")) == {rule.name for rule in blacklist.RULES}


def test_the_limits_of_reading():
    assert (characters.MAX_BYTES, shell.MAX_NESTING, shell.TIMEOUT_S) == (64 << 10, 60, 2)
    assert "at most 64 KiB of text, nested at most 60 deep, read within 2 s" in PAGE
    assert set(run.SHELL_OPTIONS) - {"-c"} == {"--noprofile", "--norc"}


def test_the_blacklist_takes_no_parameter_that_could_weaken_it():
    judged = set(inspect.signature(verdict.judge).parameters)
    assert judged == {"command", "cwd", "home", "workspace", "env", "lyma_home"}


def test_the_environment():
    beginnings = {f"{name}*" for name in environment.ALWAYS_GONE_BEGINNINGS}
    assert set(names("variable")) == environment.ALWAYS_GONE | beginnings


def test_what_root_keeps():
    row = next(row for row in table("fixed") if "root keeps" in row[0])
    assert set(re.findall(r"`([A-Z_]+)`", row[0])) == set(bwrap.ROOT_CAPABILITIES)


def options(**how) -> set[str]:
    as_root = how.pop("as_root")
    bounds = confine(attrs.evolve(AROUND, as_root=as_root), **how)
    return {word for word in bwrap.bwrap_arguments(bounds) if word.startswith("--")}


def test_the_arguments_of_bubblewrap_are_there_with_every_setting():
    every = [
        options(as_root=as_root, write=write, writable=writable)
        for as_root in (True, False)
        for write in ("workspace", "everywhere")
        for writable in ((), (Path("/srv"),))
    ]
    depends = {"--bind", "--unshare-user", "--cap-add", "--perms", "--ro-bind-try"}
    """What is bound, and how root and a plain user differ."""
    always = set.intersection(*every)
    assert set(names("argument")) == always - depends
    assert set.union(*every) - depends == always - depends


@pytest.mark.parametrize(
    "folder", ["/", "/home", "/home/dev", "/home/dev/.ssh/x", "/home/dev/.lyma", "/home/dev/.lyma/x"]
)
def test_what_is_never_writable(folder):
    with pytest.raises(ConfigError):
        confine(AROUND, writable=(Path(folder),))
    assert len(table("folder")) == 4


def test_what_landlock_grants_of_devices():
    line = next(line for line in PAGE.splitlines() if line.startswith("| of `/dev` only"))
    named = re.findall(r"`([a-z]+)`", line)
    assert named == [*grants.DEVICES, Path(grants.SHARED_MEMORY).name]
    assert not (READ | WRITE) & (Right.MAKE_BLOCK | Right.MAKE_CHAR)


def test_every_setting_of_commands_is_accounted_for():
    assert set(names("setting")) == {field.name for field in attrs.fields(ExecutorSettings)}


def test_no_setting_at_all_speaks_of_what_is_fixed():
    words = ("blacklist", "mask", "guard", "sandbox", "confine", "landlock", "bwrap", "seccomp", "unsafe", "yolo")
    every = list(setting_names(Settings))
    assert "write" in every
    assert not [name for name in every if any(word in name for word in words)]


def setting_names(of):
    for field in attrs.fields(attrs.resolve_types(of)):
        yield field.name
        if attrs.has(field.type):
            yield from setting_names(field.type)
