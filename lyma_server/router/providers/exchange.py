"""One request and its streamed answer, whatever the wire format: open, read, assemble, and turn every failure into facts."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from lyma_server.router.policy import Failure
from lyma_server.router.providers.assembly import BadPart
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.providers.connect import name_transport_error
from lyma_server.router.providers.sse import EventParser, EventTooLong
from lyma_server.router.watchdog import Stalled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    import httpx2

    from lyma_server.protocol.base import Json
    from lyma_server.router.actions import Phase
    from lyma_server.router.chat import ChatEvent, Completed, FinishReason
    from lyma_server.router.providers.sse import ServerEvent
    from lyma_server.router.watchdog import Watchdog

BODY_LIMIT = 8 << 20
ANSWER_LIMIT = 32 << 20
"""Characters of one answer, all its parts together; more than any model gives, and less than any memory holds."""

PART_COST = 16
"""Characters that a part counts for beside its own."""

STALE_S = 1.0
BAD_SHAPE = (AttributeError, TypeError, KeyError, IndexError, ValueError, RecursionError)


class Assembler(Protocol):
    """Puts an answer together. `finish` is null until the provider gives a reason; `thinking` is set when a thought begins
    of which nothing may be shown.
    """

    finish: FinishReason | None
    thinking: bool

    def feed(self, data: Json) -> list[ChatEvent]: ...
    def feed_whole(self, body: Json) -> list[ChatEvent]: ...
    def completed(self) -> Completed: ...


class Exchange:
    """One attempt. `vendor` says whose codes an error speaks; `is_last` recognises the event after which nothing comes."""

    def __init__(
        self, vendor: str, assembler: Assembler, watchdog: Watchdog, is_last: Callable[[ServerEvent], bool]
    ) -> None:
        self._vendor = vendor
        self._assembler = assembler
        self._watchdog = watchdog
        self._is_last = is_last
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._said = 0

    async def open(
        self, send: Callable[[], Awaitable[httpx2.Response]], status_errors: type[Exception]
    ) -> httpx2.Response:
        """Send, and wait for the headers. `status_errors` are the SDK's for an error status. Raises AttemptFailed.

        A connection that was kept open may have been closed by the server just as it was used again (llama.cpp does so
        after a number of requests). That shows at once and is nobody's fault, so the request is sent once more.
        """
        started = monotonic()
        try:
            return await self._open(send(), status_errors)
        except AttemptFailed as failed:
            if failed.failure.transport != "cut" or monotonic() - started > STALE_S:
                raise
        return await self._open(send(), status_errors)

    async def _open(self, sending: Awaitable[httpx2.Response], status_errors: type[Exception]) -> httpx2.Response:
        try:
            response = await self._watchdog.guard(sending)
        except Stalled as stalled:
            raise self._failed("transport", transport="deadline" if stalled.deadline else "timeout") from None
        except status_errors as error:
            raise self._refused(error) from None
        except Exception as error:  # noqa: BLE001 - the SDKs let through what lies below them; each is a fact of transport
            raise self._failed("transport", transport=name_transport_error(error)) from None
        self._status = response.status_code
        self._headers = dict(response.headers)
        self._watchdog.answered()
        return response

    async def read(self, response: httpx2.Response) -> AsyncGenerator[ChatEvent]:
        """Stream the answer; ends with `Completed`. Raises AttemptFailed. The caller closes the response."""
        blocks = response.aiter_bytes()
        first = await self._first_block(blocks)
        if first.lstrip()[:1] in (b"{", b"<", b"["):
            for event in await self._read_whole(first, blocks):
                yield event
            return
        parser = EventParser()
        block: bytes | None = first
        seen = False
        while block is not None:
            for server_event in self._parse(parser, block):
                if self._is_last(server_event):
                    await self._drain(blocks)
                    yield self._completed(parser, seen=seen)
                    return
                seen = True
                for event in self._feed(server_event):
                    yield event
            block = await self._next_block(blocks)
        for server_event in parser.end():
            if not self._is_last(server_event):
                seen = True
                for event in self._feed(server_event):
                    yield event
        yield self._completed(parser, seen=seen)

    async def _first_block(self, blocks: AsyncIterator[bytes]) -> bytes:
        """The first bytes that are not blank: servers send blank lines to keep a connection alive."""
        first = b""
        while not first.strip():
            block = await self._next_block(blocks)
            if block is None:
                break
            first = block
        return first

    async def _next_block(self, blocks: AsyncIterator[bytes]) -> bytes | None:
        """The next bytes, null at the end. Once the answer is whole, a stall or a cut is an end like any other."""
        try:
            return await self._watchdog.guard(anext(blocks, None))
        except Stalled as stalled:
            if self._assembler.finish is not None:
                return None
            raise self._failed("stall", transport="deadline" if stalled.deadline else "timeout") from None
        except Exception:  # noqa: BLE001 - whatever breaks below HTTP here has cut the stream
            if self._assembler.finish is not None:
                return None
            raise self._failed("stream", transport="cut") from None

    async def _drain(self, blocks: AsyncIterator[bytes]) -> None:
        """Read the few bytes that end the body, so that the connection can be used again."""
        self._watchdog.draining()
        try:
            while await self._watchdog.guard(anext(blocks, None)) is not None:
                pass
        except Exception:  # noqa: BLE001 - then it is closed instead
            return

    def _parse(self, parser: EventParser, block: bytes) -> list[ServerEvent]:
        try:
            return parser.feed(block)
        except EventTooLong:
            raise self._failed("stream", transport="protocol_error") from None

    def _feed(self, server_event: ServerEvent) -> list[ChatEvent]:
        events = self._assemble(server_event)
        if self._said > ANSWER_LIMIT:
            raise self._failed("stream", transport="protocol_error")
        if self._assembler.finish is not None:
            self._watchdog.finishing()
        elif self._assembler.thinking:
            self._assembler.thinking = False
            self._watchdog.thinking()
        elif events:
            self._watchdog.progress()
        return events

    def _assemble(self, server_event: ServerEvent) -> list[ChatEvent]:
        try:
            data = json.loads(server_event.data.decode())
        except (ValueError, RecursionError):
            text = server_event.data.decode("utf-8", "replace")
            if server_event.name == "error":
                raise self._failed("stream", body=text) from None
            raise self._failed("stream", body=text, transport="protocol_error") from None
        if server_event.name == "error":
            raise self._failed("stream", body=data)
        try:
            events = self._assembler.feed(data)
            for event in events:
                self._said += PART_COST + _length(event)
        except BadPart as bad:
            raise self._failed("stream", body=bad.body) from None
        except BAD_SHAPE:
            raise self._failed("stream", body=data, transport="protocol_error") from None
        return events

    async def _read_whole(self, first: bytes, blocks: AsyncIterator[bytes]) -> list[ChatEvent]:
        """Not a stream: an answer in one piece, an error, or a page."""
        body = bytearray(first)
        self._watchdog.thinking()
        while len(body) < BODY_LIMIT and (block := await self._next_block(blocks)) is not None:
            body += block
        value = parse_body(bytes(body))
        try:
            return [*self._assembler.feed_whole(value), self._assembler.completed()]
        except (BadPart, *BAD_SHAPE):
            raise self._failed("body", body=value) from None

    def _completed(self, parser: EventParser, *, seen: bool) -> Completed:
        if self._assembler.finish is not None:
            try:
                return self._assembler.completed()
            except BAD_SHAPE:  # parts that are well alone and do not fit together
                raise self._failed("stream", transport="protocol_error") from None
        if not seen and parser.stray.strip():
            raise self._failed("body", body=parse_body(parser.stray))
        raise self._failed("stream")

    def _refused(self, error: Exception) -> AttemptFailed:
        response: httpx2.Response | None = getattr(error, "response", None)
        if response is None:
            return self._failed("transport", transport=name_transport_error(error))
        self._status = response.status_code
        self._headers = dict(response.headers)
        return self._failed("http", body=parse_body(response.content))

    def _failed(self, phase: Phase, *, body: Json = None, transport: str = "") -> AttemptFailed:
        return AttemptFailed(
            Failure(
                provider=self._vendor,
                phase=phase,
                status=self._status,
                headers=self._headers,
                body=body,
                transport=transport,
            )
        )

    async def read_body(self, response: httpx2.Response) -> Json:
        """The whole body, parsed. Raises AttemptFailed."""
        body = bytearray()
        blocks = response.aiter_bytes()
        while len(body) < BODY_LIMIT and (block := await self._next_block(blocks)) is not None:
            body += block
        return parse_body(bytes(body))

    def not_an_answer(self, body: Json) -> AttemptFailed:
        """The failure of a body with status 200 that is not what was asked for."""
        return self._failed("body", body=body)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer, with lower-case names; empty before there are any."""
        return self._headers


def _length(event: ChatEvent) -> int:
    return len(getattr(event, "text", "") or getattr(event, "arguments", ""))


def parse_body(raw: bytes) -> Json:
    """JSON where it is JSON, whatever its type is said to be (DeepSeek: octet-stream); else text, at most 64 KiB."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[: 64 << 10] or None
