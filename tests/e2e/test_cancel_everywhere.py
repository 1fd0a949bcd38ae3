"""A cancellation at any moment: one answer, at once, with what was said so far; and nobody goes on working for it.

The moments are random but for their seed. Those at a stub provider are in test_editor_real.py; here are the model on board
while it starts and while it answers, real llama.cpp servers in both wire formats, a helper that hangs, and the terminal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.editors.real_server import COMMAND, settings
from tests.llama.scripts import ENDLESS as WORDS
from tests.lyma import environment, start_lyma
from tests.processes import LIMIT_S, cpu_ticks, descendants, find, wait_for, wait_until_gone
from tests.raw_client import RawClient
from tests.routing import FORMATS
from tests.stub_provider import StubProvider, call_tool, hang

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.llama.server import LlamaServer

MODEL = b"llama_child.py"
ASLEEP = b"sleep\x00600.125"
ENDLESS = "Tell me a very long story."
NOT_BEGUN = -32800
SLOW_S = 60
"""A model on a busy machine."""


def times(short: int, long: int) -> pytest.MarkDecorator:
    """How many moments are tried: a few always, many in the full run."""
    return pytest.mark.parametrize("count", [short, pytest.param(long, marks=pytest.mark.full)])


def cancel(client: RawClient, identity: Any) -> dict[str, Any]:
    """Cancel, and give the one answer."""
    start = time.monotonic()
    client.notify("$/cancelRequest", {"id": identity})
    reply = client.reply(identity)
    assert time.monotonic() - start < LIMIT_S
    client.notify("$/cancelRequest", {"id": identity})
    assert "result" in client.call("lyma/status")
    assert len(client.replies(identity)) == 1
    return reply


def check_turn(client: RawClient, result: dict[str, Any]) -> None:
    """The result is that of a turn that was stopped, after all of its events."""
    assert result["stopReason"] == "cancelled"
    events = client.events(result["turn"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events].count("turn.completed") == 1
    assert events[-1]["type"] == "turn.completed"


def wait_until_idle(pid: int) -> None:
    """Until it computes nothing any more."""
    deadline = time.monotonic() + LIMIT_S
    before = -1
    while (now := cpu_ticks(pid)) != before:
        assert time.monotonic() < deadline, "it goes on computing"
        before = now
        time.sleep(0.1)


@pytest.fixture
def on_board(smollm_model: Path, tmp_path: Path) -> Iterator[RawClient]:
    with RawClient(COMMAND, env={"LYMA_HOME": str(tmp_path), "LYMA_ORDER": "embedded"}) as client:
        client.initialize()
        client.call("lyma/status")
        yield client


def kill_the_model(client: RawClient) -> None:
    """And wait until its server knows: an ask that joins a start which is failing fails with it."""
    running = set(find(client.process.pid, MODEL))
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not running & descendants(client.process.pid))
    client.call("lyma/status")


@times(3, 70)
def test_while_the_model_on_board_starts(on_board: RawClient, count: int) -> None:
    chance = random.Random(f"starts {count}")
    for _ in range(count):
        kill_the_model(on_board)
        identity = on_board.request("lyma/ask", {"prompt": ENDLESS})
        time.sleep(chance.choice((0, chance.uniform(0, 0.2), chance.uniform(0, 1.2))))
        check_turn(on_board, cancel(on_board, identity)["result"])


@times(2, 60)
def test_while_the_model_on_board_answers(on_board: RawClient, count: int) -> None:
    chance = random.Random(f"answers {count}")
    for _ in range(count):
        start = len(on_board.messages)
        identity = on_board.request("lyma/ask", {"prompt": ENDLESS})
        on_board.wait_for(lambda m: m.get("params", {}).get("type") == "item.delta", SLOW_S, start)
        time.sleep(chance.uniform(0, 0.2))
        result = cancel(on_board, identity)["result"]
        check_turn(on_board, result)
        assert result["text"]
        (pid,) = find(on_board.process.pid, MODEL)
        wait_until_idle(pid)


@times(4, 50)
@pytest.mark.parametrize("api", FORMATS)
def test_while_a_real_server_answers(api: str, scripted_server: LlamaServer, tmp_path: Path, count: int) -> None:
    chance = random.Random(f"{api} {count}")
    url = scripted_server.openai_url if api == "openai" else scripted_server.anthropic_url
    provider = {"API": api, "BASE_URL": url, "MODEL": scripted_server.model}
    variables = {f"LYMA_PROVIDERS__LOCAL__{name}": value for name, value in provider.items()}
    with RawClient(COMMAND, env={"LYMA_HOME": str(tmp_path), "LYMA_ORDER": "local", **variables}) as client:
        client.initialize()
        client.call("lyma/status")
        for _ in range(count):
            identity = client.request("lyma/ask", {"prompt": "Go on forever.", "tools": False})
            time.sleep(chance.choice((0, chance.uniform(0, 0.05), chance.uniform(0, 0.5))))
            result = cancel(client, identity)["result"]
            check_turn(client, result)
            assert result["text"][: len(WORDS)] in WORDS
            wait_for(lambda: not scripted_server.busy_slots(), LIMIT_S)


@pytest.fixture
def hanging(tmp_path: Path) -> dict[str, str]:
    """Variables with a home, and a PATH where ripgrep hangs and so does what it has started."""
    helper = tmp_path / "bin/rg"
    helper.parent.mkdir()
    helper.write_text("#!/bin/sh\nsleep 600.125 & sleep 600.125\n")
    helper.chmod(0o700)
    (tmp_path / "work").mkdir()
    return {"LYMA_HOME": str(tmp_path / "home"), "PATH": f"{helper.parent}:{os.environ['PATH']}"}


@times(2, 20)
def test_while_a_helper_hangs(hanging: dict[str, str], tmp_path: Path, count: int) -> None:
    chance = random.Random(f"helper {count}")
    with (
        StubProvider([call_tool("search", {"pattern": "x"})]) as stub,
        RawClient(COMMAND, env={**settings(stub, tmp_path / "home"), **hanging}) as client,
    ):
        client.initialize(workspaceFolders=[{"uri": (tmp_path / "work").as_uri(), "name": "work"}])
        for _ in range(count):
            identity = client.request("lyma/ask", {"prompt": "Look for x."})
            wait_for(lambda: find(client.process.pid, ASLEEP))
            helpers = find(client.process.pid, b"sleep")
            time.sleep(chance.uniform(0, 0.2))
            check_turn(client, cancel(client, identity)["result"])
            assert wait_until_gone(helpers) < LIMIT_S


def test_while_the_command_of_a_key_hangs(hanging: dict[str, str]) -> None:
    """No turn has begun then, so the answer is the error that says so."""
    keys = {"LYMA_ORDER": "openai", "LYMA_PROVIDERS__OPENAI__KEYS": "cmd:sleep 600.125"}
    with RawClient(COMMAND, env={**hanging, **keys}) as client:
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": "hi"})
        wait_for(lambda: find(client.process.pid, ASLEEP))
        start = time.monotonic()
        client.notify("$/cancelRequest", {"id": identity})
        assert client.reply(identity)["error"]["code"] == NOT_BEGUN
        assert time.monotonic() - start < LIMIT_S
        client.process.stdin.close()
        client.wait()
        assert len(client.replies(identity)) == 1


@pytest.fixture
def slow_import(tmp_path: Path) -> dict[str, str]:
    """Variables under which importing an SDK takes longer than anybody waits."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/openai.py").write_text("import time; time.sleep(30)")
    return {"PYTHONPATH": f"{tmp_path / 'slow'}:{os.environ['PYTHONPATH']}", "LYMA_HOME": str(tmp_path / "home")}


def test_while_an_sdk_is_imported(slow_import: dict[str, str]) -> None:
    with StubProvider([hang()]) as stub:
        variables = environment(**{**settings(stub, Path(slow_import["LYMA_HOME"])), **slow_import})
        with start_lyma("ask", "--json", "hi", env=variables) as lyma:
            assert "turn.started" in lyma.stdout.readline()
            time.sleep(0.3)
            start = time.monotonic()
            lyma.send_signal(signal.SIGINT)
            out, err = lyma.communicate(timeout=20)
            assert time.monotonic() - start < LIMIT_S
    assert (lyma.returncode, err) == (130, "")
    assert json.loads(out.splitlines()[-1])["stopReason"] == "cancelled"


def test_while_a_server_imports_an_sdk(slow_import: dict[str, str]) -> None:
    with (
        StubProvider([hang()]) as stub,
        RawClient(COMMAND, env={**settings(stub, Path(slow_import["LYMA_HOME"])), **slow_import}) as client,
    ):
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": "hi"})
        client.event("turn.started")
        check_turn(client, cancel(client, identity)["result"])
        client.call("shutdown")
        start = time.monotonic()
        client.notify("exit")
        assert client.wait() == 0
        assert time.monotonic() - start < LIMIT_S


@times(2, 30)
def test_in_the_terminal(tmp_path: Path, count: int) -> None:
    chance = random.Random(f"terminal {count}")
    with StubProvider([hang("Half", " of it")]) as stub:
        for number in range(count):
            variables = environment(**settings(stub, tmp_path / "home"))
            before = len(stub.requests)
            with start_lyma("ask", "--json", "hi", env=variables, cwd=tmp_path) as lyma:
                if number % 2:
                    stub.wait_for_request(before + 1, SLOW_S)
                time.sleep(chance.uniform(0.1, 1.5) if number % 2 == 0 else chance.uniform(0, 0.2))
                start = time.monotonic()
                lyma.send_signal(signal.SIGINT)
                out, err = lyma.communicate(timeout=20)
                assert time.monotonic() - start < LIMIT_S
            assert (lyma.returncode, err) == (130, "")
            results = [json.loads(line) for line in out.splitlines() if '"type":"result"' in line]
            assert [result["stopReason"] for result in results] in ([], ["cancelled"])
            assert results or not number % 2
            for request in stub.requests[before:]:
                assert request.closed.wait(LIMIT_S)
