"""A provider that answers at once, so that what is measured is the client: `python stub.py` prints its port.

By the path before `/v1`: `short` three chunks, `long` two hundred, or one of the faults; a key that ends with `limited`
gets a 429. Without `"stream"` in the body the answer is whole. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys

from bench.router.faults import FAULTS, Fault, path_of

CHUNKS = {"short": 3, "long": 200}
MODEL = "bench"


def sse(value: object) -> bytes:
    data = f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}


USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def streamed(count: int) -> bytes:
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": f"word{number} "}) for number in range(count - 2)]  # LiteLLM refuses repetition
    events += [chunk({}, "stop"), {**chunk({}), "choices": [], "usage": USAGE}]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(map(sse, events)) + sse("[DONE]") + b"0\r\n\r\n"


def whole(status: int, body: object) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 %d Bench\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        status,
        len(data),
        data,
    )


def answer(count: int) -> dict[str, object]:
    message = {"role": "assistant", "content": "word " * (count - 2)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE}


def faulty(fault: Fault) -> bytes:
    if fault.body is None:
        return b""
    data = fault.body.encode()
    head = f"HTTP/1.1 {fault.status} Bench\r\ncontent-type: {fault.type}\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


STREAMED = {path: streamed(count) for path, count in CHUNKS.items()}
WHOLE = {path: whole(200, answer(count)) for path, count in CHUNKS.items()}
LIMITED = whole(429, {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}})


FAULTY = {path_of(name): faulty(fault) for name, fault in FAULTS.items()}


def reply_to(head: bytes, body: bytes) -> bytes:
    if b"limited\r\n" in head:
        return LIMITED
    path = head.split(b"/", 2)[1].decode()
    if path in FAULTY:
        return FAULTY[path]
    return (STREAMED if b'"stream"' in body else WHOLE)[path]


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[: end + 2]
            place = head.lower().find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self.waiting) < end + 4 + length:
                return
            body = self.waiting[end + 4 : end + 4 + length]
            self.waiting = self.waiting[end + 4 + length :]
            self.transport.write(reply_to(head, body))


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
