"""A provider that says what it is told to say: for the tour, which must cost nothing and go the same way each time.

It speaks the OpenAI wire format (chat completions, streamed) on a Unix socket, so that nothing of ours listens on a network
here either, and ends with the tour.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from lyma_server.config.addresses import SOCKET_SCHEME

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

LARGEST_REQUEST = 16 << 20
"""Bytes."""


@frozen
class Reply:
    """A text, or calls of tools by name with their arguments, or a refusal by its HTTP status."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    status: int = 200


Script: TypeAlias = Callable[[str, list[dict[str, Any]]], Reply]
"""From the last characters of the key and the messages of a request to what is answered."""


class ScriptedProvider:
    """Listens at the path of a socket for as long as the block lasts."""

    def __init__(self, script: Script, socket: Path) -> None:
        self.base_url = f"{SOCKET_SCHEME}{socket}"
        self._server = ThreadingUnixStreamServer(str(socket), _handler(script))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="scripted provider", daemon=True).start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = min(int(self.headers.get("content-length") or 0), LARGEST_REQUEST)
            asked = json.loads(self.rfile.read(size))
            reply = script(self.headers.get("authorization", "")[-4:], asked["messages"])
            if reply.status == 200:
                self._send(200, "text/event-stream", _stream(reply))
            else:
                problem = {"error": {"message": "scripted to fail", "type": "scripted", "code": None}}
                self._send(reply.status, "application/json", json.dumps(problem).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing: the tour tells what happens."""

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _stream(reply: Reply) -> bytes:
    """Server-sent events of one answer: a word at a time, then the calls, then the end with its usage."""
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in _words(reply.text)]
    deltas += [
        {"tool_calls": [{"index": number, "id": f"call_{number}", "type": "function", "function": _function(*call)}]}
        for number, call in enumerate(reply.calls)
    ]
    chunks = [_chunk(delta, None) for delta in deltas]
    chunks.append(_chunk({}, "tool_calls" if reply.calls else "stop"))
    chunks.append({**_chunk({}, None), "choices": [], "usage": _usage(reply)})
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def _function(name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "tour", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}


def _usage(reply: Reply) -> dict[str, int]:
    """About four characters a token."""
    said = len(reply.text) + sum(len(json.dumps(arguments)) for _, arguments in reply.calls)
    return {"prompt_tokens": 200, "completion_tokens": said // 4 + 1, "total_tokens": 201 + said // 4}


def _words(text: str) -> list[str]:
    return [word if at == 0 else f" {word}" for at, word in enumerate(text.split(" "))] if text else []
