"""The embedded model behind the editor's face: stopped while it starts, and gone with its editor."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.editors.doomed_client import descendants, is_gone, wait_until_gone
from tests.editors.real_server import COMMAND
from tests.raw_client import ROOT, RawClient, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("smollm_model")
LIMIT_S = 2.0
ENDLESS = "Tell me a very long story."


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.full), pytest.param(4, marks=pytest.mark.full)]
)
def test_a_cancellation_while_the_model_starts(seed: int, tmp_path: Path) -> None:
    with RawClient(COMMAND, env={"LYMA_HOME": str(tmp_path)}) as client:
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": ENDLESS})
        time.sleep(random.Random(seed).uniform(0, 1.5))
        start = time.monotonic()
        client.notify("$/cancelRequest", {"id": identity})
        result = client.reply(identity)["result"]
        assert result["stopReason"] == "cancelled"
        assert time.monotonic() - start < LIMIT_S
        children = descendants(client.process.pid)
        client.call("shutdown")
        client.notify("exit")
        assert client.wait() == 0
        assert wait_until_gone(children) < LIMIT_S


@pytest.mark.parametrize("until", ["turn.started", "item.delta"])
def test_nothing_outlives_a_killed_editor(until: str, tmp_path: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-m", "tests.editors.doomed_client", ENDLESS, until, *COMMAND],
        env=environment(LYMA_HOME=str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    server, holder = map(int, client.stdout.readline().split())
    ours = [server, *descendants(server)]
    assert until != "item.delta" or len(ours) > 1, "the model is a process of its own"
    client.kill()
    client.wait()
    client.stdout.close()
    try:
        assert wait_until_gone(ours) < LIMIT_S
        assert not is_gone(holder)
    finally:
        for pid in (*ours, holder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
