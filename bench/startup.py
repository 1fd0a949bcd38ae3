"""How long a process takes until it is of use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bench.measure import Figure, Report, compare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
BARE_PYGLS = 'from pygls.lsp.server import LanguageServer; LanguageServer("bare", "1").start_io()'
PARAMS = {"processId": None, "rootUri": None, "capabilities": {}}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}).encode()


@contextmanager
def initializing(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[int, IO[bytes]]]:
    """A server that was sent `initialize`: its process number and its stdout. It is killed in the end."""
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(INITIALIZE), INITIALIZE))
            server.stdin.flush()
            yield server.pid, server.stdout
        finally:
            server.kill()


def initialize(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start a server and wait for the first byte of its answer to `initialize`."""
    with initializing(command, environ) as (_, stdout):
        answered = stdout.read(1)
    if not answered:
        raise RuntimeError(f"{command} did not answer")


def report() -> Report:
    """Each start-up figure."""
    return Report(figures=tuple(_figures()))


def _figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as home:
        environ = os.environ | {"HOME": home, "LYMA_HOME": f"{home}/.lyma", "PYTHONPATH": str(ROOT)}
        python = sys.executable
        yield compare(
            "process start to `initialize` reply, against a bare pygls server",
            lambda: initialize([python, "-c", "from lyma_server.entry import server; server()"], environ),
            lambda: initialize([python, "-c", BARE_PYGLS], environ),
            target=1.10,
            runs=21,
        )
        yield compare(
            "`lyma --version`, against `python -c pass`",
            lambda: subprocess.run(
                [python, "-m", "lyma_server", "--version"], env=environ, capture_output=True, check=True
            ),
            lambda: subprocess.run([python, "-c", "pass"], env=environ, check=True),
            target=4.0,
        )
