"""From references to keys; what cannot be resolved is a sentence, never a crash, and never shows a value."""

from __future__ import annotations

import pytest

from lyma_server.config.keys import ResolvedKey, describe, resolve_keys, secrets_at_hand, variables_of_keys
from lyma_server.config.model import KeySettings, ProviderSettings, Settings
from lyma_server.config.presets import PRESETS
from lyma_server.errors import LymaError
from lyma_server.secret import Secret

KEY = "sk-proj-0123456789abcdef"


def no_command(command: str) -> str:
    raise AssertionError(command)


def resolve(*keys, environ=None, run_command=no_command, **provider):
    settings = Settings(providers={"local": ProviderSettings(keys=keys, **provider)})
    return resolve_keys(settings, environ or {}, run_command)["local"]


def key(value: str, account: str | None = None) -> KeySettings:
    return KeySettings(value=value, account=account)


def test_a_key_itself():
    (resolved,) = resolve(key(KEY, "work"))
    assert resolved == ResolvedKey(Secret(KEY), "work", "…cdef")


def test_a_key_in_a_variable():
    (resolved,) = resolve(key("env:MINE"), environ={"MINE": f" {KEY}\n"})
    assert resolved == ResolvedKey(Secret(KEY), None, "env:MINE")


def test_several_keys_in_a_variable():
    resolved = resolve(key("env:MINE", "work"), environ={"MINE": "one-key, two-key,,three-key"})
    assert [each.secret for each in resolved] == [Secret("one-key"), Secret("two-key"), Secret("three-key")]
    assert {each.account for each in resolved} == {"work"}


@pytest.mark.parametrize("environ", [{}, {"MINE": ""}, {"MINE": " , "}])
def test_a_variable_that_is_not_set(environ):
    (resolved,) = resolve(key("env:MINE"), environ=environ)
    assert resolved == ResolvedKey(None, None, "env:MINE", "the variable is not set")


def test_a_key_from_a_command_is_trimmed_and_each_command_runs_once():
    ran = []

    def run_command(command: str) -> str:
        ran.append(command)
        return f"\n{KEY}\n"

    resolved = resolve(key("cmd: pass show x"), key("cmd:pass show x", "work"), run_command=run_command)
    assert [each.secret for each in resolved] == [Secret(KEY)] * 2
    assert [each.source for each in resolved] == ["cmd:pass …"] * 2
    assert ran == ["pass show x"]


def test_a_command_that_fails():
    def run_command(command: str) -> str:
        raise LymaError("it ended with status 1.", detail=KEY)

    first, second = resolve(key("cmd:pass show x"), key(KEY), run_command=run_command)
    assert first.secret is None
    assert first.problem == "its command failed (it ended with status 1)"
    assert second.secret == Secret(KEY)


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ("", "it is empty"),
        (f"{KEY}\nuser: me", "it has more than one line"),
        (f"Key: {KEY}", "it holds spaces or characters that no key has"),
        (f"{KEY}é", "it holds spaces or characters that no key has"),
        (f"{KEY}\x00", "it holds spaces or characters that no key has"),
    ],
)
def test_what_can_be_no_key_is_refused_without_showing_it(output, fault):
    (resolved,) = resolve(key("cmd:x"), run_command=lambda command: output)
    assert resolved == ResolvedKey(None, None, "cmd:x", fault)


def test_a_server_of_ones_own_needs_no_key():
    assert resolve(base_url="http://127.0.0.1:1/v1") == ()


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.key_variable])
def test_a_known_provider_without_keys_says_what_to_do(name):
    for address, needed in ((PRESETS[name].base_url, True), (PRESETS[name].china_base_url, True), ("http://x", False)):
        if address is None:
            continue
        settings = Settings(providers={name: ProviderSettings(base_url=address)})
        resolved = resolve_keys(settings, {}, no_command)[name]
        assert bool(resolved) is needed
        if needed:
            problem = f"no key is configured, and {PRESETS[name].key_variable} is not set"
            assert resolved == (ResolvedKey(None, None, "", problem),)


def test_keys_of_every_provider_are_at_hand_for_redaction_and_no_command_is_run():
    keys = (key(KEY), key("env:MINE"), key("env:NONE"), key("cmd:boom"))
    settings = Settings(order=("two",), providers={"one": ProviderSettings(keys=keys), "two": ProviderSettings()})
    assert list(secrets_at_hand(settings, {"MINE": "a-key, b-key"})) == [Secret(KEY), Secret("a-key"), Secret("b-key")]


def test_variables_that_hold_a_key_are_known_by_name_however_short_the_key():
    settings = Settings(providers={"one": ProviderSettings(keys=(key("env:MINE"), key(KEY), key("cmd:echo $VAULT")))})
    environ = {"MINE": "short", "OPENAI_API_KEY": "x", "OPENAI_API_KEY_2": "y", "OPENAI_API_KEY_OLD": "z", "VAULT": "v"}
    assert variables_of_keys(settings, environ) == {"MINE", "OPENAI_API_KEY", "OPENAI_API_KEY_2"}


def test_only_the_providers_asked_for_are_resolved():
    providers = {"one": ProviderSettings(keys=(key("cmd:boom"),)), "two": ProviderSettings(keys=(key(KEY),))}
    assert set(resolve_keys(Settings(providers=providers), {}, no_command, ["two"])) == {"two"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("env:MINE", "env:MINE"),
        (KEY, "…cdef"),
        ("short", "…"),
        ("cmd:pass", "cmd:pass"),
        (f"cmd:echo {KEY}", "cmd:echo …"),
        ("cmd:", "cmd:"),
    ],
)
def test_a_description_gives_nothing_away(value, shown):
    assert describe(key(value)) == shown
