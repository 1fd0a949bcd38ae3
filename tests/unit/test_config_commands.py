"""`lyma config` and `lyma keys`, without a terminal."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest

from lyma_server.terminal.main import main

KEY = "sk-proj-0123456789abcdefghijab21"


@pytest.fixture
def lyma(capsys, monkeypatch):
    """Run a command with this on stdin; returns exit code, stdout and stderr."""

    def lyma(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = main(arguments, print)
        said = capsys.readouterr()
        return code, said.out, said.err

    return lyma


@pytest.fixture
def config() -> Path:
    return Path(os.environ["LYMA_HOME"], "config.toml")


def test_path_prints_where_the_file_is_and_makes_nothing(lyma, config):
    assert lyma("config", "path") == (0, f"{config}\n", "")
    assert not config.parent.exists()


def test_show_prints_every_value_with_its_source_and_masks_keys(lyma, config, monkeypatch):
    lyma("keys", "add", "openai", stdin=KEY)
    monkeypatch.setenv("LYMA_AGENT__CONFIRM", "all")
    code, out, err = lyma("config", "show")
    rows = {line.split()[0]: line.split(maxsplit=1)[1].split() for line in out.splitlines()}
    assert (code, err) == (0, "")
    assert rows["agent.confirm"] == ['"all"', "environment", "LYMA_AGENT__CONFIRM"]
    assert rows["agent.max_steps"] == ["50", "default"]
    assert rows["providers.openai.keys"] == ['["…ab21"]', "file", str(config)]
    assert rows["providers.openai.api"] == ['"openai"', "preset", "openai"]
    assert "sk-proj" not in out


def test_show_as_json_says_the_same(lyma, config):
    lyma("keys", "add", "openai", stdin=KEY)
    code, out, _ = lyma("config", "show", "--json")
    rows = json.loads(out)
    assert code == 0
    assert rows["providers.openai.keys"] == {"value": ["…ab21"], "source": "file", "where": str(config)}
    assert rows["order"] == {"value": ["openai"], "source": "default", "where": None}
    assert "sk-proj" not in out


def test_show_says_beside_it_that_nothing_is_configured(lyma):
    code, out, err = lyma("config", "show")
    assert code == 0
    assert '["embedded"]' in out
    assert "run `lyma setup`" in err


def test_set_writes_and_says_nothing(lyma, config):
    assert lyma("config", "set", "agent.confirm", "edits") == (0, "", "")
    assert config.read_text() == '[agent]\nconfirm = "edits"\n'
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_set_says_that_a_variable_wins(lyma, config, monkeypatch):
    monkeypatch.setenv("LYMA_AGENT__CONFIRM", "all")
    code, out, err = lyma("config", "set", "agent.confirm", "edits")
    assert (code, out) == (0, "")
    assert err == f"Written to {config}; the variable LYMA_AGENT__CONFIRM is set and still wins over it.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["config"], 2, "required"),
        (["config", "set", "agent.confirm"], 2, "required: VALUE"),
        (["config", "set", "agent.confirm", "edit"], 2, "did you mean edits?"),
        (["config", "set", "providers.openai.keys", "env:X"], 2, "lyma keys add openai"),
        (["keys", "add"], 2, "required: PROVIDER"),
        (["keys", "add", "openai"], 2, "No key was given"),
        (["keys", "add", "gpu"], 2, "No key was given"),
        (["keys", "remove", "openai", "x"], 2, "NUMBER"),
        (["keys", "remove", "openai", "1"], 2, "openai has no key 1; it has none in the file"),
    ],
)
def test_what_is_wrong_is_one_sentence(lyma, config, arguments, code, sentence):
    got, out, err = lyma(*arguments)
    assert (got, out) == (code, "")
    assert err.startswith("lyma: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert not config.exists()


def test_a_broken_file_is_exit_code_1_with_every_mistake(lyma, config):
    config.parent.mkdir(mode=0o700)
    config.write_text("[agent]\nmax_steps = 0\nconfirm = 1\n")
    config.chmod(0o600)
    for arguments in (["config", "show"], ["keys", "list"]):
        code, out, err = lyma(*arguments)
        assert (code, out) == (1, "")
        assert f"{config}, line 2: agent.max_steps" in err
        assert f"{config}, line 3: agent.confirm" in err


def test_keys_come_from_stdin_and_are_listed_masked(lyma, config, monkeypatch):
    monkeypatch.setenv("MOONSHOT_API_KEY", "x")
    assert lyma("keys", "add", "openai", stdin=f"\n {KEY} \n") == (0, f"Added a key for openai to {config}.\n", "")
    lyma("keys", "add", "openai", "--account", "work", stdin="env:WORK_KEY\n")
    lyma("keys", "add", "openai", stdin="cmd:pass show openai key\n")
    code, out, err = lyma("keys", "list")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["openai", "1", "…ab21", "-", str(config)],
        ["openai", "2", "env:WORK_KEY", "(not", "set)", "work", str(config)],
        ["openai", "3", "cmd:pass", "…", "-", str(config)],
        ["kimi", "1", "env:MOONSHOT_API_KEY", "-", "environment"],
    ]


def test_no_keys_at_all(lyma):
    code, out, _ = lyma("keys", "list")
    assert code == 0
    assert "lyma keys add PROVIDER" in out


@pytest.mark.parametrize("stdin", [f"{KEY}\n{KEY}2\n", "a b", "x" * 70_000])
def test_what_is_not_one_key_is_refused(lyma, config, stdin):
    code, out, err = lyma("keys", "add", "openai", stdin=stdin)
    assert (code, out) == (2, "")
    assert "Nothing was changed" in err
    assert stdin[:10] not in err
    assert not config.exists()


def test_a_key_is_removed_by_its_number(lyma, config):
    lyma("keys", "add", "openai", stdin=KEY)
    lyma("keys", "add", "openai", stdin="another-key")
    assert lyma("keys", "remove", "openai", "1") == (0, f"Removed key 1 of openai from {config}.\n", "")
    assert config.read_text() == '[providers.openai]\nkeys = ["another-key"]\n'


def test_keys_in_a_setting_variable_win_and_that_is_said(lyma, monkeypatch):
    monkeypatch.setenv("LYMA_PROVIDERS__OPENAI__KEYS", "one-key")
    _, _, err = lyma("keys", "add", "openai", stdin=KEY)
    assert err == "The variable LYMA_PROVIDERS__OPENAI__KEYS is set and wins over the keys in the file.\n"


@pytest.mark.parametrize("command", ["config", "keys", "setup"])
def test_help_teaches(lyma, command, capsys):
    with pytest.raises(SystemExit) as left:
        lyma(command, "--help")
    assert left.value.code == 0
    assert f"usage: lyma {command}" in capsys.readouterr().out
