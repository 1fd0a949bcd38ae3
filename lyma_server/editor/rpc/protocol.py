"""Who answers what: the state of the connection, and exactly one reply to each request.

Features are registered with pygls (`server.feature(name)(handler)`). The handler of a request takes a Call and returns a
JSON value or an awaitable of one; the handler of a notification takes its params. Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from lyma_server.editor.rpc import envelope
from lyma_server.editor.rpc.calls import Call, Calls
from lyma_server.editor.rpc.conversion import is_lsp_request, structure_lsp
from lyma_server.editor.rpc.failures import Failures, error_object
from lyma_server.editor.rpc.framing import frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from cattrs import Converter

    from lyma_server.editor.rpc.envelope import Id, Invalid, Message, Notification, Request, Response
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json
    from lyma_server.protocol.registry import Method

logger = logging.getLogger(__name__)

State: TypeAlias = Literal["new", "ready", "shut down"]
UNSTRUCTURED = frozenset({"initialize", "initialized", "codeAction/resolve"})
"""Methods whose params are taken as they are: clients say odd things in the first two, and most of them do not matter; the
action to resolve goes back to the client as it came."""


class LymaProtocol(LanguageServerProtocol):
    """JSON-RPC as an editor may expect it. `send_bytes` is where whole frames go; it must not block."""

    _server: LymaServer

    def __init__(self, server: LymaServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.state: State = "new"
        self.calls = Calls()
        self.failures = Failures(server.redact)
        self.send_bytes: Callable[[bytes], None] = lambda _frame: None
        self._own_ids = itertools.count(1)
        self._own_requests: dict[Id, Future[Any]] = {}
        self._background: set[asyncio.Future[Any]] = set()

    def _register_builtin_features(self) -> None:
        """None of those that pygls brings: each is among the features here."""

    # What comes in

    def receive(self, message: Message) -> None:
        """Handle one message."""
        receivers: dict[type, Callable[[Any], None]] = {
            envelope.Request: self._receive_request,
            envelope.Notification: self._receive_notification,
            envelope.Response: self._receive_response,
            envelope.Invalid: self._receive_invalid,
        }
        receivers[type(message)](message)

    def _receive_invalid(self, invalid: Invalid) -> None:
        logger.warning("a message was refused: %s", invalid.reason)
        self._answer(invalid.id, error=error_object(invalid.code, invalid.reason))

    def _receive_request(self, request: Request) -> None:
        refusal = self._refusal(request)
        if refusal is not None:
            self._answer(request.id, error=refusal)
            return
        call = Call(request.id, request.method, None)
        self.calls.add(call)
        try:
            call.params = self._structure(request.method, request.params)
            outcome = self.fm.features[request.method](call)
        except Exception as problem:  # noqa: BLE001 - whatever a handler raises, the client gets its reply
            self._fail(call, problem)
            return
        if inspect.isawaitable(outcome):
            call.task = asyncio.ensure_future(outcome)
            call.task.add_done_callback(lambda task: self._finish(call, task))
        else:
            self._succeed(call, outcome)

    def _refusal(self, request: Request) -> dict[str, Json] | None:
        """Why a request is not served, null when it is."""
        name, kind = self._server.redact(request.method)[:100], _is_request(request.method)
        first, new = request.method == "initialize", self.state == "new"
        known = kind is True and request.method in self.fm.features
        refusals = (
            (self.state == "shut down", envelope.INVALID_REQUEST, "The server is shutting down."),
            (request.id in self.calls, envelope.INVALID_REQUEST, "The id belongs to a request not yet answered."),
            (new and not first, envelope.NOT_INITIALIZED, "The first request must be initialize."),
            (first and not new, envelope.INVALID_REQUEST, "The server is initialized already."),
            (kind is False, envelope.INVALID_REQUEST, f"{name} is a notification and takes no id."),
            (not known, envelope.METHOD_NOT_FOUND, f"There is no method {name}."),
        )
        return next((error_object(code, reason) for holds, code, reason in refusals if holds), None)

    def _receive_notification(self, notification: Notification) -> None:
        method = notification.method
        if self.state != "ready" and method != "exit":
            return
        if _is_request(method) is not False or method not in self.fm.features:
            logger.info("the notification %.100s is not known", method)
            return
        try:
            outcome = self.fm.features[method](self._structure(method, notification.params))
        except Exception as problem:  # noqa: BLE001 - nobody waits for an answer; the log keeps it
            self.failures.describe(problem)
            logger.warning("the notification %s failed: %s", method, type(problem).__name__)
            return
        if inspect.isawaitable(outcome):
            self.run_in_background(outcome)

    def run_in_background(self, awaitable: Any) -> None:
        """Let `awaitable` run; what it raises is logged."""
        task = asyncio.ensure_future(awaitable)
        self._background.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.failures.describe(problem)

    def _structure(self, method: str, params: Json) -> Any:
        if method in UNSTRUCTURED:
            return params
        ours = _find_ours(method)
        if ours is None:
            return structure_lsp(self._converter, method, params)
        from lyma_server.protocol.convert import structure

        return structure(ours.params, {} if params is None else params, closed=True)

    # Replies

    def _finish(self, call: Call, task: asyncio.Future[Json]) -> None:
        if task.cancelled():
            error = error_object(envelope.REQUEST_CANCELLED, "The request was cancelled before it had begun.")
            self._reply(call, error=error)
        elif (problem := task.exception()) is not None:
            self._fail(call, problem)
        else:
            self._succeed(call, task.result())

    def _succeed(self, call: Call, result: Json) -> None:
        self._reply(call, result=result)

    def _fail(self, call: Call, problem: BaseException) -> None:
        self._reply(call, error=self.failures.describe(problem))

    def _reply(self, call: Call, **outcome: Json) -> None:
        if self.calls.take(call):
            self._answer(call.id, **outcome)

    def _answer(self, identity: Id | None, **outcome: Json) -> None:
        try:
            self._send({"jsonrpc": "2.0", "id": identity, **outcome})
        except (TypeError, ValueError) as problem:  # a handler gave what JSON cannot say
            self._send({"jsonrpc": "2.0", "id": identity, "error": self.failures.describe(problem)})

    def _send(self, message: dict[str, Json]) -> None:
        body = json.dumps(message, allow_nan=False, separators=(",", ":"))
        self.send_bytes(frame(body.encode("ascii")))

    # What we ask and tell

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification; `params` are JSON or of lsprotocol."""
        self._send({"jsonrpc": "2.0", "method": method, "params": self.plain(params)})

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        """Send a request and give the future of its result, as JSON. Cancelling the future tells the client.

        The id is an integer: some editors answer no other.
        """
        identity: str | int = next(self._own_ids) if msg_id is None else msg_id
        future: Future[Any] = Future()
        if callback is not None:
            future.add_done_callback(lambda done: callback(done.result()))
        self._own_requests[identity] = future
        future.add_done_callback(lambda done: self._withdraw(identity, done))
        self._send({"jsonrpc": "2.0", "id": identity, "method": method, "params": self.plain(params)})
        return future

    def _withdraw(self, identity: Id, future: Future[Any]) -> None:
        if future.cancelled() and self._own_requests.pop(identity, None) is not None:
            self.notify("$/cancelRequest", {"id": identity})

    def _receive_response(self, response: Response) -> None:
        identity = envelope.valid_id(response.id)
        future = None if identity is None else self._own_requests.pop(identity, None)
        if future is None or not future.set_running_or_notify_cancel():
            logger.info("an answer came that nobody waits for")
        elif response.error is None:
            future.set_result(response.result)
        else:
            future.set_exception(_client_error(response.error))

    def plain(self, params: Any) -> Json:
        """`params` of lsprotocol as JSON; what is JSON already stays."""
        return self._converter.unstructure(params) if hasattr(type(params), "__attrs_attrs__") else params

    # The end

    def close(self) -> None:
        """Wait for nobody any more."""
        waiting, self._own_requests = list(self._own_requests.values()), {}
        for future in waiting:
            future.cancel()
        self.calls.cancel_all()


def _is_request(method: str) -> bool | None:
    """Null where nobody defines the method."""
    ours = _find_ours(method)
    if ours is not None and ours.sender == "client":
        return ours.kind == "request"
    return is_lsp_request(method)


def _find_ours(method: str) -> Method | None:
    if not method.startswith("lyma/"):
        return None
    from lyma_server.protocol.registry import METHOD_BY_NAME

    return METHOD_BY_NAME.get(method)


def _client_error(error: Json) -> JsonRpcException:
    found = error if isinstance(error, dict) else {}
    code = found.get("code")
    return JsonRpcException(str(found.get("message", "")), code if isinstance(code, int) else None, found.get("data"))
