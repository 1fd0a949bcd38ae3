"""What pygls 2.1 does with a connection, and what Lyma does. Each check holds for Lyma and fails for pygls as it comes."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from _pytest.outcomes import Failed
from cattrs.errors import ClassValidationError
from lsprotocol import types
from pygls.protocol import default_converter
from pygls.workspace import TextDocument

from lyma_server.editor.features.positions import split_lines
from lyma_server.editor.rpc.conversion import strict_converter
from tests.raw_client import PATIENCE_S, SERVER, RawClient, frame

if TYPE_CHECKING:
    from pathlib import Path

STOCK = (sys.executable, "-m", "tests.editors.stock_server")
Check = Callable[[RawClient], None]


class Server:
    """One of the two; `patience` is how long a check waits for what stock pygls never sends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.command = {"lyma": SERVER, "stock": STOCK}[name]
        self.patience = {"lyma": PATIENCE_S, "stock": 0.6}[name]

    def start(self, **options: bool) -> RawClient:
        return RawClient(self.command, **options)

    def hold(self, check: Callable[[], None]) -> None:
        """Lyma passes the check, pygls does not."""
        if self.name == "lyma":
            check()
        else:
            with pytest.raises((AssertionError, Failed)):
                check()


@pytest.fixture(scope="module", params=["lyma", pytest.param("stock", marks=pytest.mark.full)])
def server(request: pytest.FixtureRequest) -> Server:
    return Server(request.param)


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[RawClient]:
    """One initialized connection for the checks that leave it alive."""
    with server.start() as client:
        client.initialize()
        yield client


IDS = iter(range(1000, 100000))


def code(client: RawClient, server: Server, message: dict[str, object] | bytes, identity: object) -> int | None:
    """Send `message` and give the code of the error that answers `identity`."""
    start = len(client.messages)
    client.send(message)
    reply = client.wait_for(
        lambda found: "method" not in found and found.get("id", "none") == identity, server.patience, start=start
    )
    return reply.get("error", {}).get("code")


@pytest.mark.parametrize("params", [{}, {"params": None}, {"params": []}])
def test_bad_params_are_answered(server: Server, shared: RawClient, params: dict[str, object]) -> None:
    message = {"jsonrpc": "2.0", "id": (identity := next(IDS)), "method": "workspace/executeCommand", **params}

    def check() -> None:
        assert code(shared, server, message, identity) == -32602

    server.hold(check)


def test_bad_params_are_named_with_their_path(server: Server, shared: RawClient) -> None:
    identity = shared.request("workspace/executeCommand", {"command": "x", "arguments": "abc"}, next(IDS))

    def check() -> None:
        error = shared.reply(identity, server.patience)["error"]
        assert "params.arguments" in error["message"]

    server.hold(check)


def test_malformed_json_is_answered(server: Server, shared: RawClient) -> None:
    server.hold(lambda: _equal(code(shared, server, b'{"jsonrpc": "2.0", "id": 1, "met', None), -32700))


def _equal(found: object, expected: object) -> None:
    assert found == expected


def test_an_extra_key_is_ignored(server: Server, shared: RawClient) -> None:
    message = {"jsonrpc": "2.0", "id": (identity := next(IDS)), "method": "lyma/status", "params": {}, "meta": {}}

    def check() -> None:
        assert code(shared, server, {**message, "method": "workspace/executeCommand"}, identity) == -32602

    server.hold(check)


def test_a_nested_message_is_only_data(server: Server, shared: RawClient) -> None:
    nested = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"a": 1}}

    def cancel(payload: object) -> dict[str, object]:
        command = {"command": "lyma.cancel", "arguments": [{"session": "nobody's", "payload": payload}]}
        return shared.reply(shared.request("workspace/executeCommand", command, next(IDS)), server.patience)

    assert "result" in cancel({"a": 1})

    def check() -> None:
        assert "result" in cancel(nested)

    server.hold(check)


@pytest.mark.parametrize(
    ("cls", "value"),
    [
        (types.ReferenceContext, {"includeDeclaration": "false"}),
        (types.TextDocumentIdentifier, {"uri": ["a"]}),
        (types.Position, {"line": "1", "character": 0}),
        (types.DidChangeWatchedFilesParams, {"changes": ""}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("server", ["lyma", "stock"])
def test_types_are_exact(server: str, cls: type, value: dict[str, object]) -> None:
    converter = strict_converter() if server == "lyma" else default_converter()

    def check() -> None:
        with pytest.raises(ClassValidationError):
            converter.structure(value, cls)

    Server(server).hold(check)


def test_busy_handlers_do_not_stop_the_reading(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        for _ in range(40):
            if server.name == "lyma":
                client.request("lyma/ask", {"prompt": "hang"})
            else:
                client.request("lyma/work", {})
        identity = client.request("lyma/status", {})
        server.hold(lambda: _equal("result" in client.reply(identity, server.patience), True))


def test_late_replies_after_exit_are_quiet(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        for _ in range(5):
            client.request("lyma/ask", {"prompt": "hang"})
        client.call("lyma/status", {})
        client.notify("exit")
        client.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(5 if server.name == "lyma" else 2)
        client.process.kill()
        client._threads[0].join(5)
        server.hold(lambda: _equal(bytes(client.errors), b""))


def test_a_cancelled_request_shows_no_message(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": "confirm x"})
        question = client.wait_for(lambda found: found.get("method") == "window/showMessageRequest")
        client.notify("$/cancelRequest", {"id": identity})
        client.reply(identity)
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": None})
        client.call("lyma/status", {})
        server.hold(lambda: _equal(client.notifications("window/showMessage"), []))


def test_only_messages_reach_the_protocol_stream(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        identity = client.request("lyma/ask", {"prompt": "print something"})

        def check() -> None:
            assert "result" in client.reply(identity, server.patience)
            assert b"something" in client.errors
            assert b"child" in client.errors

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading, "excepthook", lambda _: None)  # the reader fails on what is no header
            server.hold(check)


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH :%d \r\n\r\n",
        b"Content-Length:%d\n\n",
        b"X-Odd\r\nContent-Length:  %d\r\n\r\n",
    ],
)
def test_odd_headers_are_understood(server: Server, header: bytes) -> None:
    body = frame({"jsonrpc": "2.0", "id": 77, "method": "lyma/status", "params": {}}).partition(b"\r\n\r\n")[2]
    with server.start() as client:
        client.initialize()
        client.write(header % len(body) + body)
        identity = client.request("lyma/status", {}, 78)

        def check() -> None:
            assert "result" in client.reply(77, server.patience)
            assert "result" in client.reply(identity, server.patience)

        server.hold(check)


def test_no_traceback_leaves_the_server(server: Server, shared: RawClient) -> None:
    identity = shared.request("lyma/ask", {"prompt": "crash canary-of-mine"}, next(IDS))

    def check() -> None:
        error = shared.reply(identity, server.patience)["error"]
        assert error["code"] == -32603
        assert "incident" in error["message"]
        for word in ("canary", "Traceback", "File", ".py", "RuntimeError"):
            assert word not in str(error)

    server.hold(check)


def test_bodies_are_not_logged(server: Server, shared: RawClient) -> None:
    identity = shared.request("lyma/ask", {"prompt": "say unspeakable"}, next(IDS))
    shared.reply(identity, server.patience)
    server.hold(lambda: _equal(b"unspeakable" in shared.errors, False))


def test_requests_before_initialize_are_refused(server: Server) -> None:
    with server.start() as client:
        server.hold(
            lambda: _equal(
                code(client, server, {"jsonrpc": "2.0", "id": 1, "method": "lyma/status", "params": {}}, 1), -32002
            )
        )


def test_an_id_in_use_is_refused(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        for _ in range(2):
            client.request("lyma/ask", {"prompt": "hang"}, 50)
        server.hold(lambda: _equal(client.reply(50, server.patience).get("error", {}).get("code"), -32600))


@pytest.mark.parametrize("identity", [None, True, [1], {"a": 1}])
def test_an_id_that_is_none_is_refused(server: Server, shared: RawClient, identity: object) -> None:
    message = {"jsonrpc": "2.0", "id": identity, "method": "lyma/nothing", "params": {}}
    server.hold(lambda: _equal(code(shared, server, message, None), -32600))


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_id_that_is_too_large_to_be_held_is_refused(server: Server, shared: RawClient, sign: str) -> None:
    body = b'{"jsonrpc": "2.0", "id": %s1e400, "method": "lyma/status"}' % sign.encode()
    server.hold(lambda: _equal(code(shared, server, body, None), -32600))


@pytest.mark.parametrize("server", ["lyma", "stock"])
def test_only_three_marks_end_a_line(server: str) -> None:
    text = "a\u2028b\x0cc\x85d\x1ee\r\nf\rg\n"
    lines = split_lines(text) if server == "lyma" else TextDocument("file:///a", text).lines
    expected = ["a\u2028b\x0cc\x85d\x1ee\r\n", "f\r", "g\n", ""]
    assert (lines == expected) is (server == "lyma")


def wait_until_full(pipe: int) -> None:
    """Until the other end writes no more to a pipe that we do not read."""
    before, waiting = -1, array.array("i", [0])
    while before != waiting[0] or waiting[0] < 20_000:
        before = waiting[0]
        time.sleep(0.1)
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)


def test_a_client_that_does_not_read_can_still_cancel(server: Server, tmp_path: Path) -> None:
    marker = tmp_path / "cancelled"
    with server.start(read=False) as client:
        client.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}})
        client.notify("initialized", {})
        identity = client.request("lyma/ask", {"prompt": f"endless {marker}"})
        wait_until_full(client.process.stdout.fileno())
        client.notify("$/cancelRequest", {"id": identity})

        def check() -> None:
            deadline = time.monotonic() + 2
            while not marker.exists():
                late = f"not seen; exit {client.process.poll()}, stderr {bytes(client.errors)!r}"
                assert time.monotonic() < deadline, late
                time.sleep(0.02)

        server.hold(check)
        client.start_reading()
        client.reply(identity)


def test_own_requests_have_integer_ids(server: Server) -> None:
    with server.start() as client:
        client.initialize()
        client.request("lyma/ask", {"prompt": "confirm x"})
        found = client.wait_for(lambda found: found.get("method") == "window/showMessageRequest")
        server.hold(lambda: _equal(type(found["id"]), int))
