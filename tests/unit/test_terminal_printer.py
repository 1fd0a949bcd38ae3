"""The printer: never in the way, quiet when the reader has left."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

from lyma_server.protocol.events import Event, ItemCompleted, Notice, Usage, UsageReported
from lyma_server.protocol.items import TextItem
from lyma_server.terminal.printer import Printer
from lyma_server.terminal.view import WholeView


def event(body):
    return Event(session="s", turn="t", seq=1, body=body)


def text(said):
    return event(ItemCompleted(item=TextItem(id="i", text=said)))


@pytest.fixture
def pipes():
    ends = [*os.pipe(), *os.pipe()]
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def test_it_writes_in_order_and_dims_only_the_notes(pipes):
    out_read, out_write, err_read, err_write = pipes
    printer = Printer(WholeView(), dim_notes=True, lost=lambda: None, ends=(out_write, err_write))
    printer.feed(text("One"))
    printer.feed(event(Notice(text="note")))
    printer.write("{}\n")
    printer.remark("last\x1b")
    printer.close()
    assert os.read(out_read, 999) == b"One\n{}\n"
    assert os.read(err_read, 999).decode() == "\x1b[2mnote\x1b[0m\n\x1b[2mlast␛\x1b[0m\n"


def test_a_reader_that_stops_holds_up_nobody_but_the_thread(pipes):
    out_read, out_write, _, err_write = pipes
    printer = Printer(WholeView(), dim_notes=False, lost=lambda: None, ends=(out_write, err_write))
    for _ in range(40):
        printer.feed(text("x" * 10_000))
    written = printer.flushed()
    assert not written.wait(0.05)
    total = 0
    while total < 40 * 10_001 + 39:
        total += len(os.read(out_read, 1 << 20))
    assert written.wait(10)
    printer.close()


def test_a_reader_that_leaves_is_reported_once(pipes):
    out_read, out_write, err_read, err_write = pipes
    left = threading.Semaphore(0)
    printer = Printer(WholeView(), dim_notes=False, lost=left.release, ends=(out_write, err_write))
    os.close(out_read)
    printer.feed(text("One"))
    printer.feed(text("Two"))
    printer.feed(event(Notice(text="still said")))
    printer.close()
    assert left.acquire(timeout=5)
    assert not left.acquire(timeout=0)
    assert printer.broken
    assert os.read(err_read, 99) == b"still said\n"


def test_a_long_wait_is_counted_on_a_line_that_goes_when_it_ends(pipes):
    out_read, out_write, err_read, err_write = pipes
    printer = Printer(WholeView(), dim_notes=False, lost=lambda: None, patience_s=0.01, ends=(out_write, err_write))
    assert os.read(err_read, 99) == b"\r\x1b[K\x1b[2mwaiting, 0 s\x1b[0m"
    printer.feed(text("One"))
    assert os.read(err_read, 99).startswith(b"\r\x1b[K")
    assert os.read(out_read, 99) == b"One\n"
    printer.close()


def test_nothing_is_counted_in_the_middle_of_a_line_or_while_somebody_else_writes(pipes):
    _, out_write, err_read, err_write = pipes
    os.set_blocking(err_read, False)
    printer = Printer(WholeView(), dim_notes=False, lost=lambda: None, patience_s=0.2, ends=(out_write, err_write))
    printer.write("half a line")
    printer.feed(event(UsageReported(usage=Usage())))
    assert not threading.Event().wait(0.3)
    assert printer.flushed().wait(10)
    assert not threading.Event().wait(0.3)
    printer.close()
    with pytest.raises(BlockingIOError):
        os.read(err_read, 99)


def test_a_terminal_that_another_program_made_non_blocking_loses_nothing(pipes):
    out_read, out_write, _, err_write = pipes
    os.set_blocking(out_write, False)
    printer = Printer(WholeView(), dim_notes=False, lost=lambda: None, ends=(out_write, err_write))
    printer.feed(text("y" * 300_000))
    total = 0
    while total < 300_001:
        total += len(os.read(out_read, 1 << 16))
    printer.close()
    assert not printer.broken
