"""What a command sees of the user's environment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.executor.environment import command_environment, looks_secret

GONE = (
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_FUNC_rm%%",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LYMA_PROVIDERS__LOCAL__KEYS",
    "LYMA_HOME",
)


@pytest.mark.parametrize("name", GONE)
def test_what_changes_the_meaning_of_a_command_always_goes(name):
    assert command_environment({name: "x", "PATH": "/bin"}, passed=[name]) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "OPENAI_API_KEY_2", "GITHUB_TOKEN", "TOKEN", "NPM_TOKEN", "npm_config__authToken", "CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY",
     "AWS_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "DB_PASSWORD_FILE", "SSH_PRIVATE_KEY", "GPG_PASSPHRASE", "SECRETS", "MAPS_APIKEY", "AZURE_CREDENTIALS"],
)  # fmt: skip
def test_names_that_look_like_secrets_go_unless_the_user_passes_them(name):
    assert looks_secret(name)
    assert command_environment({name: "value"}) == {}
    assert command_environment({name: "value"}, passed=[name]) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "PWD", "OLDPWD", "LANG", "TERM", "EDITOR", "PYTHONPATH", "VIRTUAL_ENV", "NODE_PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM",
     "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "SECRETARY", "MONKEY", "JAVA_HOME", "GOPATH", "KEY_REPEAT", "XAUTHORITY"],
)  # fmt: skip
def test_ordinary_names_stay(name):
    assert command_environment({name: "value"}) == {name: "value"}


def test_configured_variables_and_known_values_go():
    environ = {"MY_MODEL": "sk-1", "URL": "https://u:known@host", "NAME": "ok"}
    assert command_environment(environ, key_variables=["MY_MODEL"], holds_secret=lambda text: "known" in text) == {
        "NAME": "ok"
    }


@given(st.dictionaries(st.text(min_size=1), st.text()), st.lists(st.text()))
def test_no_setting_brings_back_what_always_goes(environ, passed):
    given_names = command_environment({**environ, **dict.fromkeys(GONE, "x")}, passed=[*passed, *GONE])
    assert not set(GONE) & set(given_names)
