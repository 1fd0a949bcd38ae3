"""The core: what it is built of, what it costs to build, and what it says when nobody can be asked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lyma_server.agent.disk import DiskWorkspace
from lyma_server.compose import build_core, run_key_command
from lyma_server.errors import ConfigError, LymaError, UsageError
from lyma_server.protocol.messages import AskParams

HEAVY = (
    "anthropic", "openai", "httpx2", "pydantic", "pygls", "lsprotocol",
    "rich", "prompt_toolkit", "tomlkit", "jsonschema", "sqlite3", "cattrs",
)  # fmt: skip
KEY = "sk-proj-0123456789abcdefghij"
OTHER = "sk-proj-zyxwvutsrqponmlkjihg"


def settings(**more: str) -> dict[str, str]:
    return {"HOME": os.environ["HOME"], "LYMA_HOME": os.environ["LYMA_HOME"], "PATH": os.environ["PATH"], **more}


@pytest.fixture
async def build():
    cores = []

    def make(**variables):
        cores.append(build_core(settings(**variables)))
        return cores[-1]

    yield make
    for core in cores:
        await core.close()


def test_building_it_imports_nothing_heavy():
    code = (
        "import os, sys, lyma_server.compose as c; c.build_core(os.environ)\n"
        f"print(sorted({set(HEAVY)} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    env = {**os.environ, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": OTHER}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert (result.stdout, result.stderr) == ("[]\n", "")


async def test_the_command_of_a_key_is_not_given_other_keys(build):
    core = build(
        LYMA_ORDER="openai,deepseek",
        OPENAI_API_KEY=f"{KEY},{OTHER}",
        VAULT="deepseek-0123456789abcdef",
        LYMA_PROVIDERS__DEEPSEEK__KEYS="cmd:echo $VAULT$OPENAI_API_KEY",
    )
    assert core.keys["deepseek"][0].secret.reveal() == "deepseek-0123456789abcdef"


async def test_nor_those_that_are_too_short_to_know_or_not_in_use(build):
    core = build(
        LYMA_ORDER="deepseek",
        LYMA_PROVIDERS__OPENAI__KEYS="env:SHORT",
        SHORT="short-key",
        ANTHROPIC_API_KEY_2="abc",
        VAULT="deepseek-0123456789abcdef",
        LYMA_PROVIDERS__DEEPSEEK__KEYS="cmd:echo $VAULT$SHORT$ANTHROPIC_API_KEY_2",
    )
    assert core.keys["deepseek"][0].secret.reveal() == "deepseek-0123456789abcdef"


async def test_keys_of_every_kind_are_resolved_and_redacted(build):
    core = build(
        LYMA_ORDER="openai,deepseek",
        OPENAI_API_KEY=KEY,
        LYMA_PROVIDERS__DEEPSEEK__KEYS=f"cmd:printf '%s\\n' {OTHER}",
    )
    assert core.redactor.redact(f"a {KEY} b {OTHER} c") == "a [redacted] b [redacted] c"
    assert [status.name for status in core.provider_status()] == ["openai", "deepseek"]
    assert [key.key for status in core.provider_status() for key in status.keys] == ["…ghij", "…jihg"]
    assert KEY not in repr(core)
    assert OTHER not in repr(core)


async def test_a_key_that_cannot_be_had_is_a_problem_of_its_own(build):
    core = build(
        LYMA_ORDER="openai,deepseek", OPENAI_API_KEY=f"{KEY}", LYMA_PROVIDERS__DEEPSEEK__KEYS="cmd:echo no; exit 3"
    )
    deepseek = core.provider_status()[1]
    assert [key.state for key in deepseek.keys] == ["missing"]
    assert "3" in deepseek.keys[0].reason
    with pytest.raises(ConfigError, match="deepseek has no key that can be used"):
        core.start(AskParams(prompt="hi", provider="deepseek"), DiskWorkspace(None), None, print)


async def test_who_is_not_configured_cannot_be_asked(build):
    core = build(LYMA_ORDER="openai", OPENAI_API_KEY=KEY)
    for name in ("provider", "prefer"):
        with pytest.raises(UsageError, match="no provider 'nobody' in your order"):
            core.start(AskParams(prompt="hi", **{name: "nobody"}), DiskWorkspace(None), None, print)


async def test_who_is_configured_but_not_in_the_order_is_told_how_to_come_in(build):
    core = build(LYMA_ORDER="openai", OPENAI_API_KEY=KEY, LYMA_PROVIDERS__GPU__BASE_URL="http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=r"in your order \(openai\); `lyma config set order openai,gpu` adds it"):
        core.start(AskParams(prompt="hi", provider="gpu"), DiskWorkspace(None), None, print)


async def test_without_any_key_the_sentence_says_what_to_do(build):
    core = build(LYMA_ORDER="openai", LYMA_PROVIDERS__OPENAI__KEYS="env:NOT_THERE")
    with pytest.raises(ConfigError, match=r"No provider can be asked: .*NOT_THERE.*; run `lyma setup`"):
        core.start(AskParams(prompt="hi"), DiskWorkspace(None), None, print)


def test_the_command_of_a_key_sees_the_users_environment():
    environ = {**os.environ, "VAULT": "open"}
    assert run_key_command("echo $VAULT; echo noise >&2", environ) == "open\n"
    with pytest.raises(LymaError, match="status 4") as caught:
        run_key_command(f"echo {KEY}; echo {KEY} >&2; exit 4", environ)
    assert KEY not in caught.value.message


def test_the_home_is_made_for_its_owner_alone():
    build_core(settings(LYMA_ORDER="openai", OPENAI_API_KEY=KEY))
    assert os.stat(os.environ["LYMA_HOME"]).st_mode & 0o777 == 0o700


async def test_the_factory_is_one_and_keeps_to_the_ceiling(build):
    core = build(OPENAI_API_KEY=KEY, LYMA_FACTORY__CEILING__MAX_TURNS="3")
    assert core.factory is core.factory
    assert core.factory.ceiling.max_turns == 3
    assert core.factory.rows(core.home.root) == ()
