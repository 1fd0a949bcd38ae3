"""The person at the keyboard, on a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import threading

import pytest

from lyma_server.agent.ports import ApprovalReply, ApprovalRequest, Question
from lyma_server.terminal.person import TerminalPerson

QUESTION = Question(about="command", title="Run this command?", text="make \x1b[2Jtest")
REQUEST = ApprovalRequest(
    hash="sha256:3f9a12cc",
    nonce="n1",
    title="scout",
    summary="reads",
    manifest={},
    text="[agent]\x07",
    path=("root", "mid"),
)


def settled() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


class Terminal:
    """A person with both hands on a pseudo-terminal."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        self.person = TerminalPerson(settled, keyboard=self.slave, screen=self.slave)
        self.seen = ""

    async def wait_for(self, text):
        while text not in self.seen:
            self.seen += (await asyncio.to_thread(os.read, self.master, 4096)).decode()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.mark.parametrize(("keys", "answer"), [("yes\n", True), ("Y\n", True), ("no\n", False), ("\x04", None)])
async def test_a_question_is_shown_in_full_and_answered(terminal, keys, answer):
    asking = asyncio.create_task(terminal.person.confirm(QUESTION))
    await terminal.wait_for("[yes/no]")
    assert "make ␛[2Jtest" in terminal.seen
    terminal.type(keys)
    assert await asking is answer


async def test_only_a_plain_answer_counts(terminal):
    asking = asyncio.create_task(terminal.person.confirm(QUESTION))
    await terminal.wait_for("[yes/no]")
    terminal.seen = ""
    terminal.type("\n")
    await terminal.wait_for("[yes/no]")
    assert not asking.done()
    terminal.type("yes\n")
    assert await asking is True


async def test_what_was_typed_before_is_no_answer(terminal):
    terminal.type("yes\n")
    asking = asyncio.create_task(terminal.person.confirm(QUESTION))
    await terminal.wait_for("[yes/no]")
    terminal.type("no\n")
    assert await asking is False


@pytest.mark.parametrize(("keys", "approved"), [("9a12cc\n", True), ("reject\n", False)])
async def test_to_approve_is_to_type_the_hash(terminal, keys, approved):
    asking = asyncio.create_task(terminal.person.approve(REQUEST))
    await terminal.wait_for("type the last 6 digits")
    assert "[agent]␇" in terminal.seen
    assert "root > mid" in terminal.seen
    for wrong in ("yes\n", "approve\n", "3f9a12\n", "9a12cd\n", "9a12c\n"):
        terminal.seen = ""
        terminal.type(wrong)
        await terminal.wait_for("nothing is approved yet")
        await terminal.wait_for("type the last 6 digits")
    terminal.type(keys)
    assert await asking == ApprovalReply(hash="sha256:3f9a12cc", nonce="n1", approved=approved)


async def test_without_a_terminal_nobody_answers():
    read, write = os.pipe()
    os.write(write, b"yes\n")
    person = TerminalPerson(settled, keyboard=read, screen=write)
    assert await person.confirm(QUESTION) is None
    assert await person.approve(REQUEST) is None
    os.close(read)
    os.close(write)


async def test_a_cancel_ends_the_question(terminal):
    asking = asyncio.create_task(terminal.person.confirm(QUESTION))
    await terminal.wait_for("[yes/no]")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not asyncio.get_running_loop().remove_reader(terminal.slave)
