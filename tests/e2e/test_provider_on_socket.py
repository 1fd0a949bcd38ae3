"""A provider on a Unix socket: asked like any other, free, and a dead one is named by its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lyma_server.router.prices import is_local
from lyma_server.terminal.scripted import Reply, ScriptedProvider
from tests.lyma import run_lyma

if TYPE_CHECKING:
    from pathlib import Path


def settings(base_url: str) -> dict[str, str]:
    return {
        "LYMA_ORDER": "own",
        "LYMA_PROVIDERS__OWN__BASE_URL": base_url,
        "LYMA_PROVIDERS__OWN__MODEL": "m",
        "LYMA_PROVIDERS__OWN__KEYS": "key-for-the-socket-0001",
    }


def ask(lyma_env: dict[str, str], base_url: str, folder: Path):
    return run_lyma("ask", "--json", "hi", env={**lyma_env, **settings(base_url)}, cwd=folder)


def test_it_answers_and_costs_nothing(lyma_env, tmp_path):
    seen = []

    def script(key, messages):
        seen.append((key, messages[-1]["content"]))
        return Reply("from the socket")

    with ScriptedProvider(script, tmp_path / "own.sock") as provider:
        done = ask(lyma_env, provider.base_url, tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["text"], result["usage"]["costMicros"]) == ("from the socket", 0)
    [(key, content)] = seen
    assert key == "0001"
    assert "hi" in str(content)


def test_a_socket_that_nobody_listens_at_is_named(lyma_env, tmp_path):
    done = ask(lyma_env, f"unix:{tmp_path}/nobody.sock", tmp_path)
    assert done.returncode == 4
    assert f"unix:{tmp_path}/nobody.sock" in done.stdout


@pytest.mark.parametrize(("address", "local"), [("unix:/run/x.sock", True), ("https://unix.example/v1", False)])
def test_what_is_local(address, local):
    assert is_local(address) is local
