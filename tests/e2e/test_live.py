"""`make live` on loopback: it asks whoever has a key, and nobody else."""

from __future__ import annotations

import subprocess
import sys

from tests.lyma import environment
from tests.stub_provider import StubProvider, call_tool, fail, say

KEY = "sk-live-0123456789abcdefghij"


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.live.ask_each"]
    return subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, timeout=60, check=False
    )


def configured(name: str, url: str, key: str | None = KEY) -> dict[str, str]:
    prefix = f"LYMA_PROVIDERS__{name.upper()}__"
    return {f"{prefix}BASE_URL": url, f"{prefix}MODEL": "m", **({} if key is None else {f"{prefix}KEYS": key})}


def test_each_provider_with_a_key_is_asked_and_what_it_did_is_said() -> None:
    adds = [call_tool("add", {"a": 1234, "b": 4321}), say("The sum is 5,555.")]
    with (
        StubProvider(adds) as good,
        StubProvider([say("I cannot do sums.")]) as idle,
        StubProvider([fail(401)]) as refusing,
        StubProvider([say("unasked")]) as keyless,
    ):
        result = run(
            LYMA_ORDER="good,idle,refusing,keyless",
            **configured("good", good.openai_url),
            **configured("idle", idle.openai_url),
            **configured("refusing", refusing.openai_url),
            **configured("keyless", keyless.openai_url, None),
        )
    assert result.returncode == 1, result.stderr
    first, second, third = result.stdout.splitlines()
    assert first.startswith("ok   good m key …ghij: used the tool and gave the sum in ")
    assert "36 tokens, $0.0000 (attempts: ok, ok)" in first
    assert second.startswith("bad  idle m key …ghij: called 0 tools and said 'I cannot do sums.'")
    assert third.startswith("bad  refusing (key …ghij) did not accept the key at ")
    assert keyless.connections == 0
    assert '"5555"' in good.requests[1].raw.decode()
    assert KEY not in result.stdout + result.stderr


def test_without_keys_nothing_is_sent() -> None:
    result = run()
    assert result.returncode == 0
    assert result.stdout.startswith("No provider with a key is configured, so nothing was asked")
