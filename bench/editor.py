"""A client of the real server over pipes that does no more than a measurement needs."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-c", "from lyma_server.entry import server; server()")


class Editor:
    """Speaks LSP to one server; whatever arrives while it waits goes to `seen`."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
        )
        self._ids = itertools.count(1)
        self.seen: Callable[[dict[str, Any]], None] = lambda _message: None
        self.call("initialize", {"processId": None, "capabilities": {}, "rootUri": folder.as_uri()})
        self._send({"method": "initialized", "params": {}})
        self.call("lyma/status", {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def request(self, method: str, params: dict[str, Any]) -> int:
        identity = next(self._ids)
        self._send({"id": identity, "method": method, "params": params})
        return identity

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = self._receive()
            self.seen(message)
            if wanted(message):
                return message

    def call(self, method: str, params: dict[str, Any]) -> Any:
        identity = self.request(method, params)
        return self.wait_for(lambda message: message.get("id") == identity and "method" not in message)["result"]

    def memory_mib(self, which: str = "VmRSS") -> float:
        """What the server holds (`VmRSS`) or held at most (`VmHWM`)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith(which))) / 1024

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(stream.read(length))
        return message
