"""Where values come from, and which one wins."""

from __future__ import annotations

import json

import attrs
import pytest

from lyma_server.config import kinds, shape
from lyma_server.config.display import shown_settings
from lyma_server.config.environment import NOT_SETTINGS, variable_of
from lyma_server.config.layers import Source
from lyma_server.config.load import load_settings
from lyma_server.config.model import KeySettings, ProviderSettings, Settings
from lyma_server.config.paths import Home
from lyma_server.config.presets import PRESETS
from lyma_server.errors import ConfigError

LOCAL = '[providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.fixture
def load(tmp_path):
    """Load a text as the file, with variables and flags."""
    home = Home(tmp_path)

    def load(text="", environ=None, flags=None):
        home.config.write_text(text)
        home.config.chmod(0o600)
        return load_settings(environ or {}, home, flags)

    return load


def test_with_nothing_at_all_the_embedded_model_answers_and_says_so(tmp_path):
    loaded = load_settings({}, Home(tmp_path / "none"))
    assert loaded.settings.order == ("embedded",)
    assert loaded.settings.providers["embedded"].api == "embedded"
    assert "lyma setup" in loaded.notices[0]
    assert not (tmp_path / "none").exists()


def test_precedence_is_default_file_environment_flags(load):
    text, environ, flags = "[router]\ndeadline_s = 2\n", {"LYMA_ROUTER__DEADLINE_S": "3"}, {"router.deadline_s": "4"}
    found = [
        load(),
        load(text),
        load(text, environ),
        load(text, environ, flags),
        load("", environ),
        load("", {}, flags),
    ]
    assert [each.settings.router.deadline_s for each in found] == [600, 2, 3, 4, 3, 4]
    kinds_of_source = [each.sources["router.deadline_s"].kind for each in found]
    assert kinds_of_source == ["default", "file", "environment", "flag", "environment", "flag"]
    assert found[1].sources["router.deadline_s"].where.endswith("/config.toml")
    assert found[2].sources["router.deadline_s"].where == "LYMA_ROUTER__DEADLINE_S"


def test_a_layer_replaces_single_values_and_leaves_their_neighbours(load):
    loaded = load("[router]\ndeadline_s = 2\nconnect_s = 3\n", {"LYMA_ROUTER__CONNECT_S": "9"})
    assert (loaded.settings.router.deadline_s, loaded.settings.router.connect_s) == (2, 9)


def test_an_empty_variable_counts_as_not_set(load):
    assert load("[router]\ndeadline_s = 2\n", {"LYMA_ROUTER__DEADLINE_S": ""}).settings.router.deadline_s == 2


def example(kind):
    """A text for a variable, and the value that it stands for; never the default."""
    match kind:
        case kinds.Whole():
            return "7", 7
        case kinds.Choice():
            return kind.options[-1], kind.options[-1]
        case kinds.Text():
            return "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"
        case kinds.ListOf(item=kinds.Text()):
            return "openai, kimi", ("openai", "kimi")
        case kinds.ListOf(item=kinds.Record(short="value")):
            return "env:ONE,cmd:two", (KeySettings(value="env:ONE"), KeySettings(value="cmd:two"))
        case kinds.ListOf(item=kinds.Record()):
            folder = kind.item.cls(path="~/work", order=("kimi",))
            return '[{path = "~/work", order = ["kimi"]}]', (folder,)
    raise AssertionError(kind)


@pytest.mark.parametrize("leaf", list(shape.leaves()), ids=lambda leaf: ".".join(leaf.path))
def test_every_setting_can_be_set_by_a_variable_and_by_a_flag(load, leaf):
    path = tuple("local" if step == shape.ANY_NAME else step for step in leaf.path)
    text, expected = example(leaf.kind)
    assert expected != leaf.default
    base = {} if path[-1] == "base_url" else {"LYMA_PROVIDERS__LOCAL__BASE_URL": "http://127.0.0.1:1/v1"}
    by_variable = load("", base | {variable_of(path): text})
    by_flag = load("", base, {".".join(path): text})
    for loaded, source in ((by_variable, "environment"), (by_flag, "flag")):
        value = loaded.settings
        for step in path:
            value = value[step] if isinstance(value, dict) else getattr(value, step)
        assert value == expected
        assert loaded.sources[".".join(path)].kind == source


def test_every_field_of_the_model_is_a_setting():
    def count(cls):
        fields = [field for field in attrs.fields(cls) if field.metadata["doc"]]
        assert len(fields) == len(attrs.fields(cls)), f"a field of {cls} has no meaning"
        parts = shape.parts(cls).values()
        return sum(1 if isinstance(part, shape.Leaf) else count(part.cls) for part in parts)

    leaves = list(shape.leaves())
    assert len(leaves) == count(Settings) == len({variable_of(leaf.path) for leaf in leaves})
    assert not NOT_SETTINGS & {variable_of(leaf.path) for leaf in leaves}


def test_every_setting_has_a_source_and_is_shown(load):
    loaded = load(LOCAL, {"OPENAI_API_KEY": "x"})
    shown = {row.key: row.value for row in shown_settings(loaded)}
    names = [name for leaf in shape.leaves() for name in (loaded.settings.providers if "*" in leaf.path else ["-"])]
    assert len(shown) == len(names)
    assert json.loads(json.dumps(shown)) == shown
    assert shown["providers.openai.keys"] == ["env:OPENAI_API_KEY"]
    assert shown["providers.local.model"] == "auto"


def test_names_with_hyphens_and_capitals_are_found_in_variables(load):
    text = '[providers.My-Server]\nbase_url = "http://127.0.0.1:1/v1"\n'
    loaded = load(text, {"LYMA_PROVIDERS__MY_SERVER__MODEL": "m", "LYMA_PROVIDERS__A__B__BASE_URL": "http://x/v1"})
    assert loaded.settings.providers["My-Server"].model == "m"
    assert loaded.settings.providers["a__b"].base_url == "http://x/v1"


@pytest.mark.parametrize(
    ("text", "environ", "order"),
    [
        ("", {"OPENAI_API_KEY": "x"}, ("openai",)),
        (
            "",
            {"MOONSHOT_API_KEY": "x", "ANTHROPIC_API_KEY": "y", "DASHSCOPE_API_KEY": "z"},
            ("anthropic", "qwen", "kimi"),
        ),
        ("", {"OPENAI_API_KEY": " "}, ("embedded",)),
        ("", {"OPENAI_API_KEY_2": "x"}, ("openai",)),
        (LOCAL, {}, ("local",)),
        (LOCAL + "[providers.ollama]\n", {"DEEPSEEK_API_KEY": "x"}, ("deepseek", "local", "ollama")),
        ("[providers.embedded]\n" + LOCAL, {}, ("local", "embedded")),
        ("[providers.embedded]\n", {}, ("embedded",)),
        ('[providers.qwen]\nmodel = "m"\n', {}, ("embedded",)),
        ('[providers.qwen]\nkeys = ["k"]\n' + LOCAL, {}, ("qwen", "local")),
        ('[providers.openai]\nbase_url = "http://127.0.0.1:1/v1"\n', {}, ("openai",)),
        ("", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, ("embedded",)),
        ('order = ["local", "kimi"]\n' + LOCAL, {"OPENAI_API_KEY": "x"}, ("local", "kimi")),
        ("order = []\n" + LOCAL, {}, ("local",)),
        (LOCAL, {"LYMA_ORDER": "embedded"}, ("embedded",)),
    ],
)
def test_the_order_is_the_users_or_else_what_can_be_asked(load, text, environ, order):
    settings = load(text, environ).settings
    assert settings.order == order
    assert set(order) <= set(settings.providers)


def test_a_known_provider_needs_only_a_key(load):
    openai = load("", {"OPENAI_API_KEY": "x"}).settings.providers["openai"]
    preset = PRESETS["openai"]
    assert openai == ProviderSettings(
        api="openai",
        base_url="https://api.openai.com/v1",
        model=preset.model,
        keys=(KeySettings(value="env:OPENAI_API_KEY"),),
        fast=preset.fast,
        balanced=preset.balanced,
        strong=preset.strong,
    )


def test_what_the_user_says_of_a_known_provider_stands(load):
    text = '[providers.qwen]\nmodel = "mine"\nkeys = ["a-key"]\nbase_url = "https://dashscope.aliyuncs.com/compatible-mode/v1"\n'
    loaded = load(text, {"DASHSCOPE_API_KEY": "x"})
    qwen = loaded.settings.providers["qwen"]
    assert (qwen.model, qwen.keys) == ("mine", (KeySettings(value="a-key"),))
    assert qwen.base_url == PRESETS["qwen"].china_base_url
    assert loaded.sources["providers.qwen.fast"] == Source("preset", "qwen")
    assert loaded.sources["providers.qwen.keys"].kind == "file"


def test_several_keys_by_suffix_in_the_order_of_their_numbers(load):
    environ = {f"OPENAI_API_KEY{suffix}": "x" for suffix in ("_10", "", "_2", "_x", "_02", "_3")} | {
        "OPENAI_API_KEY_4": ""
    }
    loaded = load("", environ)
    keys = [key.value.reveal() for key in loaded.settings.providers["openai"].keys]
    assert keys == ["env:OPENAI_API_KEY", "env:OPENAI_API_KEY_2", "env:OPENAI_API_KEY_3", "env:OPENAI_API_KEY_10"]
    assert loaded.sources["providers.openai.keys"].kind == "environment"


def test_the_vendors_own_variables_move_a_known_provider_unless_the_user_did(load):
    environ = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "http://127.0.0.1:7"}
    loaded = load("", environ)
    assert loaded.settings.providers["anthropic"].base_url == "http://127.0.0.1:7"
    assert loaded.sources["providers.anthropic.base_url"] == Source("environment", "ANTHROPIC_BASE_URL")
    text = '[providers.anthropic]\nbase_url = "http://127.0.0.1:8"\n'
    assert load(text, environ).settings.providers["anthropic"].base_url == "http://127.0.0.1:8"


def test_the_short_and_the_long_form_of_keys_add_up_in_the_order_of_the_file(load):
    text = """
[providers.openai]
keys = ["one", { value = "two", account = "work" }]
[[providers.openai.key]]
value = "three"
account = "home"
"""
    keys = load(text).settings.providers["openai"].keys
    assert [(key.value.reveal(), key.account) for key in keys] == [("one", None), ("two", "work"), ("three", "home")]


def test_folders_name_providers_that_are_then_there(load):
    settings = load('[[folders]]\npath = "~/work"\norder = ["kimi"]\n', {"OPENAI_API_KEY": "x"}).settings
    assert (settings.folders[0].path, settings.folders[0].order) == ("~/work", ("kimi",))
    assert set(settings.providers) == {"kimi", "openai"}


def test_a_known_provider_without_a_key_is_left_out_with_a_notice(load):
    notices = load("[providers.qwen]\n" + LOCAL).notices
    assert notices == ("qwen is configured and has no key, so it is left out; run `lyma keys add qwen`.",)


@pytest.mark.parametrize(
    ("text", "environ"),
    [("[providers.embedded]\n", {}), ('order = ["embedded"]\n', {}), ("", {"LYMA_ORDER": "embedded"})],
)
def test_who_chose_the_embedded_model_is_not_told_of_it(load, text, environ):
    assert load(text, environ).notices == ()


@pytest.mark.parametrize(
    ("address", "far"),
    [
        ("http://example.com/v1", True),
        ("http://8.8.8.8/v1", True),
        ("https://example.com/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:1/v1", False),
        ("http://192.168.1.4/v1", False),
        ("http://localhost:1/v1", False),
        ("http://gpu/v1", False),
        ("http://gpu.local/v1", False),
    ],
)
def test_plain_http_to_a_stranger_is_worth_a_notice(load, address, far):
    notices = load(f'[providers.local]\nbase_url = "{address}"\n').notices
    assert any("unencrypted" in notice for notice in notices) is far


def test_settings_and_keys_do_not_show_secrets(load):
    secret = "sk-proj-0123456789abcdef"
    loaded = load(
        f'[providers.openai]\nkeys = ["{secret}", "cmd:echo {secret}"]\n', {"LYMA_PROVIDERS__KIMI__KEYS": secret}
    )
    for text in (
        repr(loaded),
        str(attrs.asdict(loaded.settings)),
        json.dumps([attrs.asdict(row) for row in shown_settings(loaded)]),
    ):
        assert "sk-proj" not in text


@pytest.mark.parametrize("flags", [{"router.deadline": "1"}, {"providers": "1"}, {"providers.x": "1"}, {"": "1"}])
def test_unknown_flags_are_errors(load, flags):
    with pytest.raises(ConfigError, match=r"the command line: .*is not a setting"):
        load("", {}, flags)
