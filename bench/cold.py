"""A process that starts for one question: until its request is on the wire; and what a server holds that was not asked yet."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bench.measure import Figure, Report, bound, figure
from bench.startup import BARE_PYGLS, initializing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
RUNS = 9
SERVERS = 5
PATIENCE_S = 60.0
"""For a process that may have died before it asked."""
BARE_SDK = """
import os
from openai import OpenAI
client = OpenAI(api_key="k", base_url=os.environ["LYMA_PROVIDERS__LOCAL__BASE_URL"], max_retries=0)
client.chat.completions.create(model="bench", stream=True, messages=[{"role": "user", "content": "hello"}])
"""


def report() -> Report:
    """Both figures."""
    with tempfile.TemporaryDirectory() as home:
        environ = os.environ | {"HOME": home, "LYMA_HOME": f"{home}/.lyma", "PYTHONPATH": str(ROOT)}
        return Report(figures=(_first_request(environ, Path(home)), _idle_memory(environ)))


def _first_request(environ: Mapping[str, str], folder: Path) -> Figure:
    ours = (sys.executable, "-m", "lyma_server", "ask", "hello")
    theirs = (sys.executable, "-c", BARE_SDK)
    pairs = [(until_asked(ours, environ, folder), until_asked(theirs, environ, folder)) for _ in range(RUNS + 1)]
    return figure(
        "process start to the request of `lyma ask`, against the bare openai SDK",
        pairs[1:],  # the first one wrote what the others find
        target=1.50,
    )


def until_asked(words: Sequence[str], environ: Mapping[str, str], folder: Path, stderr: IO[str] | None = None) -> float:
    """Milliseconds until the process, which is ended then, has asked its only provider."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        local = {
            "LYMA_ORDER": "local",
            "LYMA_PROVIDERS__LOCAL__BASE_URL": f"http://127.0.0.1:{listener.getsockname()[1]}/v1",
            "LYMA_PROVIDERS__LOCAL__MODEL": "bench",
        }
        start = time.perf_counter()
        process = subprocess.Popen(
            words,
            env={**environ, **local},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr or subprocess.DEVNULL,
        )
        with process:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1)
                    return (time.perf_counter() - start) * 1000
            finally:
                process.kill()


def _idle_memory(environ: Mapping[str, str]) -> Figure:
    ours = (sys.executable, "-c", "from lyma_server.entry import server; server()")
    theirs = (sys.executable, "-c", BARE_PYGLS)
    more = sorted(_memory_mib(ours, environ) - _memory_mib(theirs, environ) for _ in range(SERVERS))
    return bound(
        "memory after `initialize`, more than a bare pygls server", more[SERVERS // 2], target=10.0, unit="MiB"
    )


def _memory_mib(words: Sequence[str], environ: Mapping[str, str]) -> float:
    """What a server holds when it has answered `initialize` and nothing more was said."""
    with initializing(words, environ) as (pid, stdout):
        length = int(stdout.readline().partition(b":")[2])
        while stdout.readline() != b"\r\n":
            pass
        json.loads(stdout.read(length))
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
