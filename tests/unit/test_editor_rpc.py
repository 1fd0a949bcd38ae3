"""The parts of the connection, one by one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from lyma_server.editor.features.events import EventStream
from lyma_server.editor.rpc.direct import DirectOutput
from lyma_server.editor.rpc.lifetime import Lifetime
from lyma_server.editor.rpc.reader import Reader
from lyma_server.editor.rpc.writer import CONGESTED, Writer
from lyma_server.protocol.events import Event, ItemDelta, TurnCompleted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def read_all(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(descriptor, 1 << 16)
    return data


@pytest.mark.parametrize("blocking", [True, False])
def test_the_writer_keeps_the_order(pipe: Pipe, blocking: bool) -> None:
    os.set_blocking(pipe[1], blocking)
    writer = Writer(pipe[1], pytest.fail)
    messages = [b"%d," % number * (number % 50) for number in range(2000)]
    for message in messages:
        writer.send(message)
    writer.start()
    whole = b"".join(messages)
    assert read_all(pipe[0], len(whole)) == whole
    writer.close(1)


@pytest.fixture(params=["pipe", "small pipe", "socket", "small socket"])
def channel(request: pytest.FixtureRequest, pipe: Pipe) -> Iterator[Pipe]:
    """What an editor may have given us as our output."""
    if request.param == "small pipe":
        fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 4096)
    if "pipe" in request.param:
        yield pipe
        return
    theirs, ours = socket.socketpair()
    with theirs, ours:
        if request.param == "small socket":
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        yield theirs.fileno(), ours.fileno()


def test_a_message_that_fits_needs_no_thread(channel: Pipe) -> None:
    writer = Writer(channel[1], pytest.fail)
    writer.send(b"first")
    writer.send(b"second")
    assert os.read(channel[0], 100) == b"firstsecond"
    writer.close(0)


@pytest.mark.parametrize("size", [700, select.PIPE_BUF, select.PIPE_BUF + 1, 70_000])
def test_a_full_output_stops_nobody_and_loses_nothing(channel: Pipe, size: int) -> None:
    writer = Writer(channel[1], pytest.fail)
    messages = [bytes([65 + number % 26]) * size for number in range(600_000 // size)]
    sender = threading.Thread(target=lambda: [writer.send(message) for message in messages], daemon=True)
    sender.start()
    sender.join(20)
    assert not sender.is_alive()
    writer.start()
    whole = b"".join(messages)
    assert read_all(channel[0], len(whole)) == whole
    writer.close(5)


def test_who_else_fills_the_output_stops_nobody(pipe: Pipe) -> None:
    os.write(pipe[1], bytes(fcntl.fcntl(pipe[1], fcntl.F_GETPIPE_SZ)))
    direct = DirectOutput(pipe[1])
    assert direct.write(b"word") == 0
    os.read(pipe[0], 8192)
    assert direct.write(b"word") == 4
    assert os.get_blocking(pipe[1])
    direct.close()
    assert direct.write(b"word") == 0


def test_an_output_that_is_no_pipe_is_left_to_the_thread(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        writer = Writer(file.fileno(), pytest.fail)
        writer.send(b"words")
        assert (tmp_path / "file").read_bytes() == b""
        writer.start()
        writer.close(5)
    assert (tmp_path / "file").read_bytes() == b"words"
    assert DirectOutput(999_999).write(b"x") == 0


def test_messages_of_several_threads_stay_whole(channel: Pipe) -> None:
    writer = Writer(channel[1], pytest.fail)
    writer.start()
    lengths = (3, 900, 5000, 40)
    senders = [
        threading.Thread(target=lambda name=name: [writer.send(name * n + b"\n") for n in lengths * 50], daemon=True)
        for name in (b"a", b"b", b"c")
    ]
    for sender in senders:
        sender.start()
    size = 3 * 50 * (sum(lengths) + len(lengths))
    lines = read_all(channel[0], size).splitlines()
    for name in (b"a", b"b", b"c"):
        assert [len(line) for line in lines if line.startswith(name)] == [*lengths] * 50
    assert all(len(set(line)) == 1 for line in lines)
    writer.close(5)


def test_the_writer_never_blocks_and_gives_up_on_the_dead(pipe: Pipe) -> None:
    told: list[str] = []
    writer = Writer(pipe[1], told.append, queue_limit=4 * CONGESTED)
    writer.start()
    assert not writer.congested
    for _ in range(8):
        writer.send(b"x" * CONGESTED)
    assert told == ["the client does not read"]
    writer.send(b"late")
    writer.close(0.01)
    assert told == ["the client does not read"]


def test_the_writer_tells_of_congestion(pipe: Pipe) -> None:
    writer = Writer(pipe[1], pytest.fail)
    writer.start()
    writer.send(b"x" * (CONGESTED + 1))
    assert writer.congested
    read_all(pipe[0], CONGESTED + 1)
    writer.close(5)
    assert not writer.congested


def test_the_writer_tells_of_a_closed_output(pipe: Pipe) -> None:
    told = threading.Event()
    writer = Writer(pipe[1], lambda _reason: told.set())
    writer.start()
    os.close(pipe[0])
    writer.send(b"x")
    assert told.wait(5)


def test_the_reader_waits_until_messages_are_handled(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lyma_server.editor.rpc.reader._UNHANDLED_LIMIT", 3)
    delivered: list[object] = []
    ended, third = threading.Event(), threading.Event()

    def deliver(message: object) -> None:
        delivered.append(message)
        if len(delivered) == 3:
            third.set()

    os.set_blocking(pipe[0], False)
    reader = Reader(pipe[0], deliver, ended.set)
    reader.start()
    os.write(pipe[1], b"Content-Length: 2\r\n\r\n{}" * 5)
    os.close(pipe[1])
    assert third.wait(5)
    assert not ended.wait(0.05)
    assert len(delivered) == 3
    for _ in range(2):
        reader.handled()
    assert ended.wait(5)
    assert len(delivered) == 5


def test_a_lifetime_ends_once() -> None:
    reasons: list[str] = []
    lifetime = Lifetime(reasons.append, patience_s=1e6)
    lifetime.end("one")
    lifetime.end("two")
    assert reasons == ["one"]


def test_a_lifetime_ends_with_what_it_watches(pipe: Pipe) -> None:
    ended = threading.Event()
    lifetime = Lifetime(lambda _reason: ended.set(), patience_s=1e6)
    lifetime.watch_output(pipe[1])
    assert not ended.wait(0.05)
    os.close(pipe[0])
    assert ended.wait(5)


def delta(text: str, item: str = "i") -> Event:
    return Event(session="s", turn="t", seq=1, body=ItemDelta(item=item, text=text))


async def test_events_are_joined_while_the_client_does_not_read() -> None:
    sent: list[dict[str, object]] = []
    congested = False
    stream = EventStream(sent.append, lambda: congested)
    stream(delta("a"))
    congested = True
    for text in "bcd":
        stream(delta(text))
    stream(delta("x", "j"))
    stream(delta("e"))
    await asyncio.sleep(0.12)
    assert [event["text"] for event in sent] == ["a"]
    congested = False
    while len(sent) < 3:
        await asyncio.sleep(0.01)
    stream(delta("f"))
    congested = True
    stream(delta("g"))
    stream(Event(session="s", turn="t", seq=9, body=TurnCompleted(stop_reason="end_turn")))
    stream.close()
    stream(delta("late"))
    assert [event.get("text") for event in sent] == ["a", "bcde", "x", "f", "g", None]
    assert [event["seq"] for event in sent] == [1, 2, 3, 4, 5, 6]


def test_a_parent_that_died_while_we_were_still_starting_ends_the_process() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    reasons: list[str] = []
    lifetime = Lifetime(reasons.append, patience_s=1e6)
    lifetime.watch_parent(os.getppid())
    assert reasons == []
    lifetime.watch_parent(gone.pid)
    assert reasons == ["the process that started us is gone"]
