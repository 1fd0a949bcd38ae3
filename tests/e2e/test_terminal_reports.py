"""`lyma status`, `models` and `doctor`: they say how things stand and change nothing."""

from __future__ import annotations

import json
import os
import re

import pytest

from lyma_server.protocol.convert import structure
from lyma_server.protocol.messages import ModelsResult, ProviderStatus, StatusResult
from lyma_server.terminal.status import _in_all, _rows
from tests.lyma import environment, run_lyma
from tests.stub_provider import StubProvider, fail, refusing_url, say

KEY = "sk-proj-0123456789abcdefghij"


def one(name, url, key=KEY, model="stub-model"):
    prefix = f"LYMA_PROVIDERS__{name.upper()}__"
    return {f"{prefix}BASE_URL": url, f"{prefix}MODEL": model, f"{prefix}KEYS": key}


@pytest.fixture
def stub():
    with StubProvider([say("ok")], models=("stub-model", "other-model")) as stub:
        yield stub


def test_status_shows_keys_masked(stub):
    env = environment(
        LYMA_ORDER="work,home", **one("work", stub.openai_url), **one("home", stub.openai_url, "env:GONE")
    )
    result = run_lyma("status", env=env)
    assert result.returncode == 0
    assert "work      stub-model  closed   …ghij     -        ready" in result.stdout
    assert "missing: " in result.stdout
    assert "GONE" in result.stdout
    assert result.stdout.endswith("\ntoday: $0.0000; no limit (router.daily_cap_micros)\n")
    assert KEY not in result.stdout + result.stderr
    status = structure(StatusResult, json.loads(run_lyma("status", "--json", env=env).stdout))
    assert [provider.name for provider in status.providers] == ["work", "home"]
    assert [provider.keys[0].state for provider in status.providers] == ["ready", "missing"]
    assert status.home == os.environ["LYMA_HOME"]
    assert stub.requests == []


def test_status_shows_what_other_processes_met_and_spent():
    first = {"first-0123456789abcdef-1": "429", "second-0123456789abcdef-2": "401"}

    def reply(request):
        headers = {"openai-organization": "org-of-the-first"} if request.key[-1] == "1" else {}
        return fail(int(first[request.key]), headers={"retry-after": "3600", **headers})

    with StubProvider(reply) as work, StubProvider([say("ok", input_tokens=40, output_tokens=2)]) as other:
        env = environment(
            LYMA_ORDER="work,down,free",
            LYMA_ROUTER__DAILY_CAP_MICROS="5000000",
            **one("work", work.openai_url, ",".join(first)),
            **one("down", refusing_url()),
            **one("free", other.openai_url),
        )
        assert run_lyma("ask", "--no-tools", "hi", env=env).returncode == 0
        result = run_lyma("status", env=env)
    _, _, head, *rows, _, total = result.stdout.splitlines()
    assert head.split() == ["provider", "model", "breaker", "key", "account", "state", "today"]
    limited, refused, down, free = (" ".join(row.split()) for row in rows)
    assert re.fullmatch(
        r"work stub-model closed …ef-1 [0-9a-f]{12} cooling until .+ \(is limiting the rate of requests\) -", limited
    )
    assert re.fullmatch(r"…ef-2 - disabled until .+ \(did not accept the key\)", refused)
    assert down == "down stub-model open …ghij - ready -"
    assert free == "free stub-model closed …ghij - ready 42 tokens, $0.0000"
    assert total == "today: $0.0000; at most $5.0000"


def test_a_price_that_is_not_known_is_shown_as_unknown():
    unknown = ProviderStatus(name="one", api="openai", model="m", tokens_today=1200, cost_micros_today=None)
    known = ProviderStatus(name="two", api="openai", model="m", tokens_today=10, cost_micros_today=1_234_500)
    assert [_rows(provider)[0][-1] for provider in (unknown, known)] == [
        "1,200 tokens, price unknown",
        "10 tokens, $1.2345",
    ]
    assert (
        _in_all((unknown, known), 5_000_000) == "today: at least $1.2345, and more at an unknown price; at most $5.0000"
    )


def test_models_lists_what_the_providers_offer(stub):
    env = environment(LYMA_ORDER="work,gone", **one("work", stub.openai_url), **one("gone", refusing_url()))
    result = run_lyma("models", env=env)
    assert result.returncode == 0
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [
        ["work", "stub-model"],
        ["work", "other-model"],
    ]
    assert result.stderr.startswith("gone could not be reached at http://127.0.0.1:")
    assert result.stderr.count("\n") == 1
    listed = structure(ModelsResult, json.loads(run_lyma("models", "work", "--json", env=env).stdout))
    assert [model.id for model in listed.models] == ["stub-model", "other-model"]
    assert run_lyma("models", "gone", env=env).returncode == 4


def test_doctor_is_content_when_all_is_well(stub):
    result = run_lyma("doctor", env=environment(LYMA_ORDER="work", **one("work", stub.openai_url)))
    assert result.returncode == 0, result.stdout
    assert "ok    work key …ghij from " in result.stdout
    assert "ok    work answers and offers stub-model" in result.stdout
    assert "bad " not in result.stdout
    assert KEY not in result.stdout


def test_doctor_says_how_to_mend_what_is_not(stub):
    env = environment(
        LYMA_ORDER="work,gone,home",
        **one("work", stub.openai_url, model="stub-modle"),
        **one("gone", refusing_url()),
        **one("home", stub.openai_url, "env:NOT_THERE"),
    )
    result = run_lyma("doctor", env=env)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert "note  work answers but does not list stub-modle" in lines
    assert "      lyma config set providers.work.model MODEL, for example stub-model" in result.stdout
    assert any(line.startswith("bad   gone: ") for line in lines)
    assert any(line.startswith("bad   home: ") and "NOT_THERE" in line for line in lines)
    assert "      lyma keys add home" in lines


def test_doctor_offline_asks_nobody(stub):
    result = run_lyma("doctor", "--offline", env=environment(LYMA_ORDER="work", **one("work", stub.openai_url)))
    assert result.returncode == 0
    assert "the providers were not asked" in result.stdout
    assert stub.listings == []


def test_doctor_reports_a_bad_configuration(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("ordr = []\n")
    config.chmod(0o640)
    result = run_lyma("doctor", env=environment(LYMA_HOME=str(tmp_path)))
    assert result.returncode == 1
    assert "chmod 600" in result.stdout
