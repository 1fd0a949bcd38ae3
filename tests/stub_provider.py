"""A provider on loopback that does as it is told and remembers what it was asked.

    with StubProvider([fail(429, headers={"retry-after": "7"}), say("Hel", "lo")]) as stub:
        ...                                  # base URL: stub.openai_url or stub.anthropic_url
    stub.requests[1].key, stub.requests[1].body["messages"]

Both wire formats, streamed or whole, by the path that is asked. Replies are taken in turn, the last one for ever; or a
function from request to reply. It runs in a thread of its own, so tests may be synchronous or not.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs

from tests import stub_formats

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Sequence

End = Literal["finish", "hang", "keep_alive", "cut", "eof", "error"]


@attrs.frozen(kw_only=True)
class Reply:
    """What to do with one request. `pause_s` is between chunks; `end` is what comes after the last one."""

    text: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # name and arguments, as the model wrote them
    finish: str = "end_turn"  # or max_tokens, refusal; calls finish as such
    input_tokens: int = 11
    output_tokens: int = 7
    end: End = "finish"
    error: dict[str, Any] = attrs.field(factory=dict)
    pause_s: float = 0.0
    silent: bool = False  # not even headers
    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    body: str | None = None  # sent as it is, instead of all the above


def say(*chunks: str, **more: Any) -> Reply:
    """Stream text."""
    return Reply(text=chunks, **more)


def call_tool(name: str, arguments: dict[str, Any] | str, **more: Any) -> Reply:
    """Ask for a tool; a string stands for arguments exactly as a model might write them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Reply(calls=((name, written),), **more)


def fail(status: int, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
    """Answer with a status and a JSON body (a plausible error where none is given)."""
    body = {"error": {"message": f"stub says {status}", "type": "stub_error"}} if body is None else body
    return Reply(status=status, body=json.dumps(body), headers={"content-type": "application/json", **(headers or {})})


def html(status: int = 200, page: str = "<!doctype html><title>Gateway</title>") -> Reply:
    """Answer with a web page, as proxies do."""
    return Reply(status=status, body=page, headers={"content-type": "text/html"})


def hang(*chunks: str) -> Reply:
    """Say the chunks, then nothing more, and keep the connection open until the client leaves."""
    return Reply(text=chunks, end="hang")


def never_answer() -> Reply:
    """Accept the request and send nothing, not even headers."""
    return Reply(silent=True, end="hang")


def cut(*chunks: str) -> Reply:
    """Say the chunks, then reset the connection."""
    return Reply(text=chunks, end="cut")


def refusing_url() -> str:
    """A URL where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


@attrs.define(eq=False)
class Request:
    """A request as it came. `closed` is set when the client left before the reply had ended, `done` when it had."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    closed: threading.Event = attrs.field(factory=threading.Event)
    done: threading.Event = attrs.field(factory=threading.Event)

    @property
    def body(self) -> Any:
        return json.loads(self.raw or b"null")

    @property
    def key(self) -> str:
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or bearer


class StubProvider:
    """The server. `requests` are the model calls in order of arrival; `listings` the requests for /models, which `listing`
    answers where it is given. `connections` counts those that were opened.
    """

    def __init__(
        self,
        replies: Sequence[Reply] | Callable[[Request], Reply],
        models: Sequence[str] = ("stub-model",),
        *,
        listing: Reply | Callable[[Request], Reply] | None = None,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.listings: list[Request] = []
        self.connections = 0
        self.models = tuple(models)
        self._listing = listing or (lambda _request: Reply(body=json.dumps(stub_formats.listing(self.models))))
        self._host = host
        self._tls = tls
        self._replies = replies
        self._arrival = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def wait_for_request(self, number: int = 1, timeout_s: float = 10) -> Request:
        """Wait until that many model calls have arrived and give the last of these."""
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self.requests) >= number, timeout_s):
                raise TimeoutError(f"{len(self.requests)} of {number} requests arrived")
        return self.requests[number - 1]

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connect, self._host, 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.connections += 1
        try:
            while request := await _read_request(reader):
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection lives on."""
        sending = asyncio.ensure_future(self._send(request, writer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                alive = sending.result()
                request.done.set()
                return alive
            request.closed.set()
            return False
        except ConnectionError:
            request.closed.set()
            return False
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.method == "GET" and request.path.split("?")[0].endswith("/models"):
            self.listings.append(request)
            reply = self._listing(request) if callable(self._listing) else self._listing
        else:
            reply = self._next_reply(request)
        if reply.silent:
            await asyncio.Event().wait()
        if reply.body is not None:
            await _send_whole(writer, reply.status, reply.headers, reply.body)
            return True
        if not request.body.get("stream"):
            await _send_whole(writer, reply.status, reply.headers, json.dumps(stub_formats.whole(request, reply)))
            return True
        return await _send_stream(writer, reply, stub_formats.stream(request, reply))

    def _next_reply(self, request: Request) -> Reply:
        with self._arrival:
            number = len(self.requests)
            self.requests.append(request)
            self._arrival.notify_all()
        if callable(self._replies):
            return self._replies(request)
        return self._replies[min(number, len(self._replies) - 1)]


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = first.split(" ")
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, raw)


async def _send_whole(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: str) -> None:
    data = body.encode()
    _write_head(writer, status, {"content-type": "application/json", **headers, "content-length": str(len(data))})
    writer.write(data)
    await writer.drain()


async def _send_stream(writer: asyncio.StreamWriter, reply: Reply, chunks: Sequence[str]) -> bool:
    _write_head(
        writer,
        reply.status,
        {"content-type": "text/event-stream", **reply.headers, "transfer-encoding": "chunked"},
    )
    async for chunk in _paced(chunks, reply):
        data = chunk.encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
    if reply.end == "cut":
        writer.transport.abort()
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _paced(chunks: Sequence[str], reply: Reply) -> AsyncIterator[str]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(reply.pause_s)
    if reply.end == "hang":
        await asyncio.Event().wait()
    while reply.end == "keep_alive":
        yield ": keep-alive\n\n"
        await asyncio.sleep(max(reply.pause_s, 0.01))


def _write_head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} Stub", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
