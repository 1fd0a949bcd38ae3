"""`lyma setup` and `lyma keys add`, as a person at a terminal meets them."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

import pytest

from tests.lyma import run_lyma
from tests.pseudo_terminal import PseudoTerminal
from tests.stub_provider import StubProvider, refusing_url, say

KEY = "sk-ant-api03-typed-by-a-person-0123456789"


@pytest.fixture
def config(lyma_env) -> Path:
    return Path(lyma_env["LYMA_HOME"]) / "config.toml"


def stored(config: Path) -> dict:
    """What the file says; nobody else may read it."""
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
    return tomllib.loads(config.read_text())


def test_a_key_is_pasted_unseen_tested_and_stored(config, lyma_env):
    with StubProvider([say("hello")]) as stub:
        env = lyma_env | {"ANTHROPIC_BASE_URL": stub.anthropic_url}
        with PseudoTerminal("setup", env=env) as terminal:
            terminal.expect("Which provider?")
            terminal.expect("Number or name: ")
            terminal.type("nonsense")
            terminal.expect("Please type a number")
            terminal.type("1")
            terminal.expect("Key for anthropic, not shown: ")
            terminal.type("")
            terminal.expect("No key was given")
            terminal.expect("Key for anthropic, not shown: ")
            terminal.type(KEY)
            terminal.expect("It works.")
            assert terminal.leave() == 0
        assert [request.key for request in stub.listings] == [KEY]
    assert "typed-by" not in terminal.shown
    assert stored(config) == {"providers": {"anthropic": {"keys": [KEY]}}}


def test_a_key_that_does_not_work_is_taken_back(config, lyma_env):
    with PseudoTerminal("setup", env=lyma_env | {"OPENAI_BASE_URL": refusing_url()}) as terminal:
        terminal.expect("Number or name: ")
        terminal.type("openai")
        terminal.expect("not shown: ")
        terminal.type(KEY)
        terminal.expect("It does not work yet: ")
        terminal.expect("Keep the key? [Y/n] ")
        terminal.type("n")
        terminal.expect("Taken back.")
        assert terminal.leave() == 1
    assert "typed-by" not in terminal.shown
    assert stored(config) == {"providers": {"openai": {"keys": []}}}


def test_what_is_taken_back_leaves_the_order_as_it_was(config, lyma_env):
    config.parent.mkdir(mode=0o700)
    config.write_text('order = ["kimi"] # mine\n\n[providers.kimi]\nkeys = ["a-key-of-kimi"]\n')
    config.chmod(0o600)
    with PseudoTerminal("setup", env=lyma_env | {"OPENAI_BASE_URL": refusing_url()}) as terminal:
        terminal.expect("Number or name: ")
        terminal.type("openai")
        terminal.expect("not shown: ")
        terminal.type(KEY)
        terminal.expect("Keep the key? [Y/n] ")
        terminal.type("n")
        terminal.expect("Taken back.")
        assert terminal.leave() == 1
    assert stored(config)["order"] == ["kimi"]
    assert "# mine" in config.read_text()


def test_a_key_that_the_order_leaves_out_is_told(config, lyma_env):
    config.parent.mkdir(mode=0o700)
    config.write_text('order = ["kimi"]\n')
    config.chmod(0o600)
    done = run_lyma("keys", "add", "openai", env=lyma_env, stdin=KEY)
    assert "`lyma config set order kimi,openai` adds it" in done.stderr
    elsewhere = run_lyma("keys", "add", "deepseek", env=lyma_env | {"LYMA_ORDER": "openai"}, stdin=KEY)
    assert "(openai) leaves deepseek out; add it to " in elsewhere.stderr
    assert "LYMA_ORDER" in elsewhere.stderr
    named = run_lyma("keys", "add", "kimi", env=lyma_env, stdin=KEY)
    assert (named.returncode, named.stderr) == (0, "")


def test_a_server_of_ones_own_needs_an_address_and_joins_an_order_that_was_chosen(config, lyma_env):
    config.parent.mkdir(mode=0o700)
    config.write_text('order = ["kimi"] # mine\n\n[providers.kimi]\nkeys = ["a-key-of-kimi"]\n')
    config.chmod(0o600)
    with StubProvider([say("hello")]) as stub, PseudoTerminal("setup", env=lyma_env) as terminal:
        terminal.expect("Number or name: ")
        terminal.type("local")
        terminal.expect("Address, such as ")
        terminal.type("gpu:8080")
        terminal.expect("must be an address such as")
        terminal.type(stub.openai_url)
        terminal.expect("(empty: it needs none): ")
        terminal.type("")
        terminal.expect("It works.")
        assert terminal.leave() == 0
        url = stub.openai_url
    document = stored(config)
    assert document["order"] == ["kimi", "local"]
    assert document["providers"]["local"] == {"base_url": url}
    assert "# mine" in config.read_text()


def test_an_account_in_china_has_another_address(config, lyma_env):
    with PseudoTerminal("setup", env=lyma_env | {"HTTPS_PROXY": refusing_url()}) as terminal:
        terminal.expect("Number or name: ")
        terminal.type("kimi")
        terminal.expect("mainland China? [y/N] ")
        terminal.type("y")
        terminal.expect("not shown: ")
        terminal.type(KEY)
        terminal.expect("Keep the key? [Y/n] ")
        terminal.type("")
        terminal.expect("Kept.")
        assert terminal.leave() == 0
    assert stored(config)["providers"]["kimi"] == {"base_url": "https://api.moonshot.cn/v1", "keys": [KEY]}


@pytest.mark.parametrize("prompt", ["Number or name: ", "not shown: "])
def test_the_end_of_input_stops_it_with_a_sentence(config, lyma_env, prompt):
    with PseudoTerminal("setup", env=lyma_env) as terminal:
        if prompt != "Number or name: ":
            terminal.expect("Number or name: ")
            terminal.type("anthropic")
        terminal.expect(prompt)
        terminal.press("\x04")
        assert terminal.leave() == 2
    assert "run `lyma setup` again" in terminal.shown
    assert "Traceback" not in terminal.shown
    assert not config.exists()


def test_control_c_stops_it(config, lyma_env):
    with PseudoTerminal("setup", env=lyma_env) as terminal:
        terminal.expect("Number or name: ")
        terminal.interrupt()
        assert terminal.leave() == 130
    assert "Traceback" not in terminal.shown
    assert not config.exists()


def test_without_a_terminal_it_refuses_and_says_what_to_do_instead(config):
    done = run_lyma("setup", stdin=f"anthropic\n{KEY}\n")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "needs a terminal" in done.stderr
    assert "lyma keys add PROVIDER" in done.stderr
    assert not config.exists()


def test_keys_add_asks_unseen_on_a_terminal(config, lyma_env):
    with PseudoTerminal("keys", "add", "openai", "--account", "work", env=lyma_env) as terminal:
        terminal.expect("Key for openai (not shown): ")
        terminal.type(KEY)
        terminal.expect("Added a key for openai")
        assert terminal.leave() == 0
    assert "typed-by" not in terminal.shown
    assert stored(config) == {"providers": {"openai": {"keys": [{"value": KEY, "account": "work"}]}}}


def test_a_key_on_the_command_line_is_refused(config):
    done = run_lyma("keys", "add", "openai", KEY)
    assert done.returncode == 2
    assert "run `lyma keys add openai` and paste it there" in done.stderr
    assert KEY not in done.stderr
    assert not config.exists()
    assert os.environ.get("LYMA_HOME") == str(config.parent)
