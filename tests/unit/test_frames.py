"""Messages between our own processes."""

from __future__ import annotations

import os
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.isolation import frames

JSON = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20) | st.none(), max_size=4)


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_messages_arrive_whole_with_their_descriptors(pair):
    ours, theirs = pair
    reading, writing = os.pipe()
    frames.send(ours, {"a": 1}, (writing,))
    os.close(writing)
    frames.send(ours, "two")
    message, (received,) = frames.receive(theirs)
    assert message == {"a": 1}
    assert not os.get_inheritable(received)
    os.write(received, b"x")
    assert os.read(reading, 1) == b"x"
    os.close(received)
    os.close(reading)
    assert frames.receive(theirs) == ("two", [])


def test_a_large_message_comes_whole(pair):
    ours, theirs = pair
    large = "x" * 3_000_000
    reading, writing = os.pipe()
    sender = threading.Thread(target=frames.send, args=(ours, large, (writing,)))
    sender.start()
    message, descriptors = frames.receive(theirs)
    sender.join()
    assert message == large
    for descriptor in (*descriptors, reading, writing):
        os.close(descriptor)


def test_the_end_is_an_end(pair):
    ours, theirs = pair
    frames.send(ours, "last")
    ours.sendall(frames.LENGTH.pack(100) + b"{")
    ours.close()
    assert frames.receive(theirs) == ("last", [])
    with pytest.raises(EOFError):
        frames.receive(theirs)
    with pytest.raises(EOFError):
        frames.receive(theirs)


def test_no_message_is_too_large_to_refuse(pair):
    ours, theirs = pair
    ours.sendall(frames.LENGTH.pack(frames.LARGEST + 1))
    with pytest.raises(EOFError):
        frames.receive(theirs)


@settings(max_examples=30)
@given(st.lists(JSON, max_size=5), st.data())
def test_pieces_are_put_together(messages, data):
    import json

    raw = b"".join(frames.LENGTH.pack(len(body)) + body for body in (json.dumps(each).encode() for each in messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    splitter = frames.Splitter()
    found = [
        each for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True) for each in splitter.feed(raw[start:end])
    ]
    assert found == messages


def test_who_has_read_all_may_leave_before_we_look(pair, monkeypatch):
    """The last word goes out whole; that the other side is gone by then is no failure."""
    ours, theirs = pair
    send_fds = socket.send_fds

    def and_leave(*arguments):
        sent = send_fds(*arguments)
        theirs.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", and_leave)
    reading, writing = os.pipe()
    frames.send(ours, "last", (writing,))
    os.close(reading)
    os.close(writing)
