"""What globs match, what nothing matches, and what is refused when an agent is compiled."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.factory.globs import fault_of, is_allowed
from lyma_server.factory.protected import is_protected
from lyma_server.factory.wildcard import fits
from tests.agents import codes, examined

MATCHES = [
    ("CHANGELOG.md", "CHANGELOG.md"), ("*.md", "a.md"), ("*", "a"), ("**", "a"), ("**", "a/b/c"), ("src/**", "src/a"), ("src/**", "src/a/b.py"),
    ("**/a.py", "a.py"), ("**/a.py", "x/y/a.py"), ("src/**/t?st_*.py", "src/test_x.py"), ("src/**/t?st_*.py", "src/a/b/tast_x.py"), ("a/*/c", "a/b/c"),
    (".config/*", ".config/a"), ("src/**/*.é", "src/x.é"), ("*.*", "a.b"), ("a/**/b/**/c", "a/b/c"), ("a/**/b/**/c", "a/x/b/y/z/c"),
]  # fmt: skip
MISSES = [
    ("*.md", "a/b.md"), ("src/**", "src"), ("src/**", "srcs/a"), ("*", ".hidden"), ("**", ".hidden/a"), ("**", "a/.hidden"), ("**", "a/.hidden/b"),
    ("?hidden", ".hidden"), ("a/*/c", "a/c"), ("a/*/c", "a/b/b/c"), ("A.md", "a.md"), ("a", "a/b"), ("**/a", "a/b"), ("src/*", "src/a/b"),
]  # fmt: skip


@pytest.mark.parametrize("writing", [False, True])
def test_what_a_glob_matches(writing):
    for glob, path in MATCHES:
        assert fault_of(glob, writing=writing) is None
        assert is_allowed(path, (glob,), writing=writing), (glob, path)
    for glob, path in MISSES:
        assert fault_of(glob, writing=writing) is None
        assert not is_allowed(path, (glob,), writing=writing), (glob, path)


PROTECTED = [
    ".git/config", "a/.git/hooks/x", ".GIT/config", ".Git", ".git /x", ".git./x", "git~1/config", ".g\u200bit/config", "\uff0egit/config", ".lyma/agents/x",
    ".LYMA/a", ".env", ".env.local", "a/.env.production", ".ENV", ".envrc", "id_rsa", "keys/id_ed25519", "a/ID_RSA.pub", "server.pem", "a/b.KEY", "x.p12",
    ".ssh/config", ".aws/credentials", ".netrc", ".npmrc", "credentials.json", ".vscode/tasks.json", ".idea/x", ".nvim.lua", ".exrc", ".dir-locals.el",
    "x.code-workspace", ".claude/settings.json", ".cursor/rules", ".cursorrules", ".mcp.json", ".codex/x", ".aider.conf.yml", "a/../.git/config", "a//b",
    "a\\..\\.git", "a:b", "./a", "..", "a/", "a\x00b", "a\nb",
]  # fmt: skip
WRITE_PROTECTED = [
    "AGENTS.md",
    "docs/CLAUDE.md",
    "gemini.md",
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
    ".gitattributes",
    "sitecustomize.py",
    ".bashrc",
]
OPEN = [
    "src/a.py",
    "environment.py",
    "gitlab.md",
    "keys.py",
    "id_mapping.py",
    ".editor",
    "a.env",
    "monkey.txt",
    "README.md",
    "lyma.toml",
    "Makefile",
]


@pytest.mark.parametrize("path", PROTECTED, ids=ascii)
def test_protected_files_match_nothing_whatever_the_glob_says(path):
    for writing in (False, True):
        assert is_protected(path, writing=writing)
        assert not is_allowed(path, ("**", "*", "**/*", path, ".*/**", "**/.*", "**/.*/**"), writing=writing)


def test_some_files_may_be_read_and_not_written():
    for path in WRITE_PROTECTED:
        assert not is_allowed(path, (path,), writing=True)
        assert is_allowed(path, (path,), writing=False)
    for path in OPEN:
        assert is_allowed(path, (path,), writing=True)


REACHING = [
    ".git/**", "**/.git/config", ".g*/**", ".?it/x", ".*", ".*/**", "**/.*", ".GIT/x", ".lyma/**", ".l*/x", ".env", ".env*", "**/.env.local", ".e*", "src/.env.?",
    "*.pem", "certs/*.pem", "**/*.key", "id_rsa", "id_rsa*", "**/id_ed25519.pub", ".ssh/*", ".vscode/**", ".v*/settings.json", ".claude/**", ".cursor*/**", ".mcp.json",
    "\uff0egit/config", "git~1/config", ".git\u00a0/x",
]  # fmt: skip
ODD = ["/etc/passwd", "//a", "~/a", "~root/a", "a\\b", "../a", "a/../b", "a/..", "./a", "a/./b", "a//b", "a/", "", "C:/a", "a**", "**a/b", "a/**b", "**/**", "[a]/b",
       "{a,b}", "!a", "a|b", "$HOME/a", "`a`", "a ", " a", "a./b", "x" * 257, "a\x00b"]  # fmt: skip


@pytest.mark.parametrize("setting", ["read", "write"])
def test_globs_that_reach_what_is_protected_are_refused(setting):
    for glob in REACHING:
        assert fault_of(glob, writing=setting == "write")[0] == "protected_files", glob
    assert codes(examined(**{f"files__{setting}": ["src/**", ".git/**"]})) == {
        ("protected_files", f"files.{setting} (item 2)")
    }


def test_globs_that_would_let_an_agent_instruct_others_are_refused_for_writing():
    for glob in ("AGENTS.md", "**/claude.md", ".github/**", ".g*hub/**", ".git?ttributes"):
        assert fault_of(glob, writing=True)[0] == "protected_files", glob
    assert fault_of("AGENTS.md", writing=False) is None


def test_globs_that_are_no_plain_relative_paths_are_refused():
    for glob in ODD:
        fault = fault_of(glob, writing=False)
        if "\x00" not in glob:
            assert fault is not None, glob
            assert fault[0] == "bad_glob", glob
        assert examined(files__read=[glob]).bundle is None, glob


def test_a_hostile_pattern_takes_no_time():
    assert not fits("a" * 5000, "*a" * 120 + "b")
    deep = "/".join(["a"] * 200)
    assert not is_allowed(deep, ("/".join(["**", "a"] * 40) + "/b",), writing=False)


@settings(deadline=None)
@given(st.text("ab.*?", max_size=8), st.text("ab.", max_size=8))
def test_wildcards_mean_what_they_mean_elsewhere(pattern, name):
    assert fits(name, pattern) == fnmatch.fnmatchcase(name, pattern)
