"""A client that speaks in bytes over real pipes, so that a test says exactly what a server gets and sees what it sends.

    with RawClient(command) as client:
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": "hi"})
        assert client.reply(identity)["result"]["text"]

A thread keeps everything that arrives, in order; waiting is bounded.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[1]
SERVER = (sys.executable, "-m", "tests.editors.fake_server")
PATIENCE_S = 20.0


UNANSWERED = object()
"""What a client does that keeps a request of the server's open."""


@attrs.frozen
class Refusal:
    """What a client answers by an error."""

    code: int = -32601


def frame(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **extra}


class RawClient:
    def __init__(
        self, command: Sequence[str] = SERVER, *, read: bool = True, env: dict[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**(env or {})),
            cwd=ROOT,
        )
        self.messages: list[dict[str, Any]] = []
        self.errors = bytearray()
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self._ids = itertools.count(1)
        self._arrived = threading.Condition()
        self._ended = False
        self._threads = [threading.Thread(target=self._keep_errors, daemon=True)]
        self._reader = threading.Thread(target=self._keep_messages, daemon=True)
        for thread in self._threads:
            thread.start()
        if read:
            self.start_reading()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in (*self._threads, self._reader):
            if thread.ident is not None:
                thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def start_reading(self) -> None:
        self._reader.start()

    # What goes out

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(frame(message))

    def request(self, method: str, params: Any = None, identity: Any = None) -> Any:
        identity = next(self._ids) if identity is None else identity
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        return identity

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def call(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.reply(self.request(method, params))

    def initialize(self, capabilities: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        given = {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities or {}, **params}
        reply = self.call("initialize", given)
        self.notify("initialized", {})
        return reply["result"]

    # What comes in

    def wait_for(
        self, wanted: Callable[[dict[str, Any]], bool], timeout: float = PATIENCE_S, start: int = 0
    ) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        with self._arrived:
            while True:
                for message in self.messages[start:]:
                    if wanted(message):
                        return message
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "the server closed its output" if self._ended else "nothing came"
                    raise AssertionError(f"{why}; so far {self.messages[-5:]}; stderr {bytes(self.errors)[-2000:]!r}")
                self._arrived.wait(left)

    def reply(self, identity: Any, timeout: float = PATIENCE_S) -> dict[str, Any]:
        return self.wait_for(lambda found: "method" not in found and found.get("id") == identity, timeout)

    def replies(self, identity: Any) -> list[dict[str, Any]]:
        return [found for found in self.messages if "method" not in found and found.get("id") == identity]

    def event(self, type_: str, timeout: float = PATIENCE_S) -> dict[str, Any]:
        found = self.wait_for(
            lambda found: found.get("method") == "lyma/event" and found["params"]["type"] == type_, timeout
        )
        return found["params"]

    def events(self, turn: str | None = None) -> list[dict[str, Any]]:
        found = [m["params"] for m in self.messages if m.get("method") == "lyma/event"]
        return [event for event in found if turn in (None, event["turn"])]

    def notifications(self, method: str) -> list[Any]:
        return [found["params"] for found in self.messages if found.get("method") == method and "id" not in found]

    def wait(self, timeout: float = PATIENCE_S) -> int:
        return self.process.wait(timeout)

    def _keep_errors(self) -> None:
        while data := os.read(self.process.stderr.fileno(), 65536):
            self.errors += data

    def _keep_messages(self) -> None:
        stream = self.process.stdout
        while (message := read_message(stream)) is not None:
            with self._arrived:
                self.messages.append(message)
                self._arrived.notify_all()
            if "id" in message and message.get("method") in self.answers:
                outcome = self.answers[message["method"]](message["params"])
                refused = isinstance(outcome, Refusal)
                reply = {"error": {"code": outcome.code, "message": "no"}} if refused else {"result": outcome}
                if outcome is not UNANSWERED:
                    self.send({"jsonrpc": "2.0", "id": message["id"], **reply})
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()


def read_message(stream: Any) -> dict[str, Any] | None:
    """The next message, null at the end. Anything but a message fails: nothing else may be in the stream."""
    length = None
    while True:
        line = stream.readline()
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        name, colon, value = line.partition(b":")
        assert colon, f"not a header: {line!r}"
        if name.strip().lower() == b"content-length":
            length = int(value)
    assert length is not None
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None
