"""Money, through the real `lyma`: a vendor with known prices stands behind a tunnel on loopback."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.lyma import environment, run_lyma
from tests.private_network import AUTHORITY, Tunnel, server_tls
from tests.stub_provider import StubProvider, refusing_url, say

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "sk-kimi-0123456789abcdefghij"
USED = {"input_tokens": 10_000, "output_tokens": 500}
COST_MICROS = 10_000 * 950_000 // 1_000_000 + 500 * 4_000_000 // 1_000_000
"""kimi-k2.7-code, by hand: 0.95 USD in and 4 USD out for a million tokens."""


@contextmanager
def kimi(order: str, **more: str) -> Iterator[tuple[StubProvider, dict[str, str]]]:
    """The stub that stands for Kimi, and the environment in which `lyma` reaches it."""
    with StubProvider([say("paid", **USED)], tls=server_tls()) as stub, Tunnel(stub.port) as tunnel:
        surroundings = {"SSL_CERT_FILE": AUTHORITY, "HTTPS_PROXY": tunnel.url, "MOONSHOT_API_KEY": KEY}
        yield stub, environment(LYMA_ORDER=order, **surroundings, **more)


def local(url: str) -> dict[str, str]:
    return {"LYMA_PROVIDERS__LOCAL__BASE_URL": url, "LYMA_PROVIDERS__LOCAL__MODEL": "m"}


def ask(env: dict[str, str], *arguments: str) -> Any:
    return run_lyma("ask", "--no-tools", *arguments, "hi", env=env)


def test_the_cost_is_the_one_made_by_hand_in_the_result_and_in_the_status() -> None:
    with kimi("kimi") as (_, env):
        results = [json.loads(ask(env, "--json").stdout.splitlines()[-1]) for _ in range(2)]
        status = json.loads(run_lyma("status", "--json", env=env).stdout)
        shown = run_lyma("status", env=env).stdout
    assert [result["usage"]["costMicros"] for result in results] == [COST_MICROS] * 2
    provider = status["providers"][0]
    assert (provider["tokensToday"], provider["costMicrosToday"]) == (21_000, 2 * COST_MICROS)
    assert f"21,000 tokens, ${2 * COST_MICROS / 1e6:.4f}" in shown


def test_over_the_days_cap_nothing_is_sent_that_costs_and_what_is_free_goes_on() -> None:
    with (
        StubProvider([say("free")]) as free,
        kimi("kimi,local", LYMA_ROUTER__DAILY_CAP_MICROS=str(COST_MICROS), **local(free.openai_url)) as (stub, env),
    ):
        answers = [ask(env).stdout for _ in range(3)]
        pinned = ask(env, "--provider", "kimi")
        asked = len(stub.requests)
    assert answers == ["paid\n", "free\n", "free\n"]
    assert (pinned.returncode, pinned.stdout, asked) == (4, "", 1)
    assert "Today's limit of 0.01 USD is reached" in pinned.stderr


def test_a_fallback_that_costs_more_is_told() -> None:
    with kimi("local,kimi", **local(refusing_url())) as (_, env):
        result = ask(env)
    assert result.stdout == "paid\n"
    assert (
        "warning: kimi kimi-k2.7-code answers in place of local m and costs more: "
        "$0.95 in and $4 out for a million tokens, against nothing."
    ) in result.stderr.splitlines()
