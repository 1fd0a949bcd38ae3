"""Events are numbered without gaps, hide secrets, and gather text."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from lyma_server.agent import events
from lyma_server.agent.events import EventStream
from lyma_server.protocol.events import (
    EventBody,
    ItemCompleted,
    ItemDelta,
    ItemDiscarded,
    ItemStarted,
    Notice,
    TurnCompleted,
)
from lyma_server.protocol.items import TextItem, ToolCallItem
from lyma_server.secret import Redactor, Secret
from tests.fakes import Ears

KEY = "sk-test-0123456789abcdefghij"
END = TurnCompleted(stop_reason="end_turn")


def stream(ears: Ears, redactor: Redactor | None = None) -> tuple[EventStream, list[EventBody]]:
    kept: list[EventBody] = []
    return EventStream("s", "t", redactor or Redactor(), ears, kept.append), kept


def texts(ears: Ears) -> list[str]:
    return [body.text for body in ears.bodies if isinstance(body, ItemDelta)]


def started(item: str) -> ItemStarted:
    return ItemStarted(item=TextItem(id=item))


def whole(item: str, text: str) -> ItemCompleted:
    return ItemCompleted(item=TextItem(id=item, text=text))


BODIES = st.one_of(
    st.builds(lambda i, t: ItemDelta(item=i, text=t), st.sampled_from("ab"), st.text(max_size=5)),
    st.builds(whole, st.sampled_from("ab"), st.text(max_size=5)),
    st.builds(lambda i: ItemDiscarded(item=i, reason="x"), st.sampled_from("ab")),
    st.builds(lambda t: Notice(text=t), st.text(max_size=5)),
)


@given(st.lists(BODIES, max_size=30), st.lists(BODIES, max_size=3))
def test_numbers_have_no_gaps_and_nothing_follows_the_end(bodies: list[EventBody], late: list[EventBody]) -> None:
    async def play() -> Ears:
        ears = Ears()
        events_out, _ = stream(ears)
        for body in [*bodies, END, *late]:
            events_out.emit(body)
        await asyncio.sleep(0)
        return ears

    ears = asyncio.run(play())
    assert [event.seq for event in ears.events] == list(range(1, len(ears.events) + 1))
    assert ears.types.index("turn.completed") == len(ears.types) - 1


@given(st.lists(st.sampled_from([*KEY, "a ", KEY, KEY[:9]]), max_size=40))
def test_no_secret_leaves_in_pieces_and_deltas_add_up(pieces: list[str]) -> None:
    redactor = Redactor([Secret(KEY)])

    async def play() -> Ears:
        ears = Ears()
        out, _ = stream(ears, redactor)
        out.emit(started("a"))
        for piece in pieces:
            out.emit(ItemDelta(item="a", text=piece))
        out.emit(whole("a", "".join(pieces)))
        return ears

    ears = asyncio.run(play())
    completed = ears.bodies[-1]
    assert isinstance(completed, ItemCompleted)
    assert isinstance(completed.item, TextItem)
    assert "".join(texts(ears)) == completed.item.text
    assert KEY not in completed.item.text


async def test_first_words_leave_at_once_and_the_next_are_gathered() -> None:
    ears = Ears()
    out, _ = stream(ears)
    for word in ("one", " two", " three"):
        out.emit(ItemDelta(item="a", text=word))
    assert texts(ears) == ["one"]
    async with asyncio.timeout(5):
        while len(texts(ears)) < 2:
            await asyncio.sleep(events.INTERVAL_S / 5)
    assert texts(ears) == ["one", " two three"]


async def test_much_text_does_not_wait() -> None:
    ears = Ears()
    out, _ = stream(ears)
    out.emit(ItemDelta(item="a", text="x"))
    out.emit(ItemDelta(item="a", text="y" * events.LARGEST_DELTA))
    assert [len(text) for text in texts(ears)] == [1, events.LARGEST_DELTA]


async def test_text_is_said_before_what_comes_after_it() -> None:
    ears = Ears()
    out, _ = stream(ears)
    for body in (started("a"), ItemDelta(item="a", text="1"), ItemDelta(item="a", text="2"), Notice(text="n")):
        out.emit(body)
    assert ears.types == ["item.started", "item.delta", "item.delta", "notice"]


async def test_what_is_kept_has_no_deltas_but_those_of_a_discarded_item() -> None:
    ears = Ears()
    out, kept = stream(ears)
    for item in "ab":
        out.emit(started(item))
        out.emit(ItemDelta(item=item, text="1"))
        out.emit(ItemDelta(item=item, text="2"))
    out.emit(whole("a", "12"))
    out.emit(ItemDiscarded(item="b", reason="interrupted"))
    assert [body.type for body in kept] == [
        "item.started",
        "item.started",
        "item.completed",
        "item.delta",
        "item.discarded",
    ]
    assert [body.text for body in kept if isinstance(body, ItemDelta)] == ["12"]


async def test_secrets_are_hidden_deep_inside_an_event() -> None:
    ears = Ears()
    out, kept = stream(ears, Redactor([Secret(KEY)]))
    out.emit(ItemCompleted(item=ToolCallItem(id="a", name="write_file", arguments={"x": [{KEY: f"_{KEY}_"}]})))
    for body in (*ears.bodies, *kept):
        assert isinstance(body, ItemCompleted)
        assert isinstance(body.item, ToolCallItem)
        assert body.item.arguments == {"x": [{"[redacted]": "_[redacted]_"}]}


async def test_a_listener_that_fails_does_not_stop_the_turn() -> None:
    def fail(_event: object) -> None:
        raise RuntimeError("deaf")

    kept: list[EventBody] = []
    out = EventStream("s", "t", Redactor(), fail, kept.append)
    out.emit(END)
    assert kept == [END]
