"""A streamed answer becomes the same items however it is cut."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from lyma_server.agent.assembly import Assembler
from lyma_server.protocol.events import EventBody, ItemCompleted, ItemDelta, ItemDiscarded, ItemStarted, Notice
from lyma_server.protocol.items import Item, TextItem, ThinkingItem, ToolCallItem
from lyma_server.router.chat import (
    Block,
    Completed,
    Message,
    Remark,
    Restarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)
from tests.fakes import ORIGIN, Usage, answer

if TYPE_CHECKING:
    import random

words = st.text(min_size=1, max_size=30)
blocks = st.lists(
    st.one_of(
        st.builds(Text, words),
        st.builds(Thinking, words, st.none() | st.just("signature")),
        st.builds(ToolCall, st.just("theirs"), st.just("read_file"), st.dictionaries(words, words, max_size=2), words),
    ),
    max_size=6,
)


def cut(text: str, dice: random.Random) -> list[str]:
    places = sorted(dice.randrange(len(text) + 1) for _ in range(dice.randrange(4)))
    return [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]


def stream(answer_blocks: list[Block], dice: random.Random) -> list:
    events: list = []
    index = 0
    for block in answer_blocks:
        if isinstance(block, ToolCall):
            events += [ToolCallDelta(index, block.name, part) for part in cut(block.raw, dice)]
            index += 1
        else:
            kind = TextDelta if isinstance(block, Text) else ThinkingDelta
            events += [kind(part) for part in cut(block.text, dice)]
    finish = "tool_calls" if index else "end_turn"
    return [*events, Completed(Message("assistant", tuple(answer_blocks), ORIGIN), finish, Usage())]


def feed(events: list) -> tuple[Assembler, list[EventBody]]:
    numbers = itertools.count(1)
    assembler = Assembler(lambda: f"i{next(numbers)}")
    return assembler, [body for event in events for body in assembler.feed(event)]


def plain(item: Item) -> tuple:
    if isinstance(item, ToolCallItem):
        return (item.kind, item.id, item.name, str(item.arguments))
    assert isinstance(item, (TextItem, ThinkingItem))
    return (item.kind, item.id, item.text)


def completed(bodies: list[EventBody]) -> list[tuple]:
    return [plain(body.item) for body in bodies if isinstance(body, ItemCompleted)]


@given(blocks, st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_every_cutting_gives_the_same_items(answer_blocks: list[Block], one: random.Random, two: random.Random) -> None:
    assert completed(feed(stream(answer_blocks, one))[1]) == completed(feed(stream(answer_blocks, two))[1])


@given(blocks, st.randoms(use_true_random=False))
def test_deltas_add_up_to_the_completed_text(answer_blocks: list[Block], dice: random.Random) -> None:
    _, bodies = feed(stream(answer_blocks, dice))
    said: dict[str, str] = {}
    for body in bodies:
        if isinstance(body, ItemDelta):
            said[body.item] = said.get(body.item, "") + body.text
    texts = {
        body.item.id: body.item.text
        for body in bodies
        if isinstance(body, ItemCompleted) and hasattr(body.item, "text")
    }
    assert said == texts


@given(blocks, st.randoms(use_true_random=False))
def test_each_item_starts_once_and_ends_once(answer_blocks: list[Block], dice: random.Random) -> None:
    _, bodies = feed(stream(answer_blocks, dice))
    started = [body.item.id for body in bodies if isinstance(body, ItemStarted)]
    ended = [body.item.id for body in bodies if isinstance(body, ItemCompleted)]
    assert len(set(started)) == len(started)
    assert sorted(started) == sorted(ended)
    assert not any(isinstance(body, ItemDiscarded) for body in bodies)


@given(blocks, st.randoms(use_true_random=False))
def test_the_answer_keeps_its_blocks_and_its_calls_bear_the_ids_of_their_items(
    answer_blocks: list[Block], dice: random.Random
) -> None:
    assembler, bodies = feed(stream(answer_blocks, dice))
    assert assembler.answer is not None
    got = assembler.answer.message.blocks
    assert [type(block) for block in got] == [type(block) for block in answer_blocks]
    calls = [block.id for block in got if isinstance(block, ToolCall)]
    assert calls == [item[1] for item in completed(bodies) if item[0] == "tool_call"]


def test_an_answer_that_came_at_once_has_deltas_too() -> None:
    _, bodies = feed(answer("whole")[-1:])
    assert [type(body) for body in bodies] == [ItemStarted, ItemDelta, ItemCompleted]


def test_calls_are_matched_by_index_though_they_start_out_of_order() -> None:
    calls = (ToolCall("a", "first", {}), ToolCall("b", "second", {}))
    events = [ToolCallDelta(1, "second", ""), ToolCallDelta(0, "first", ""), answer(*calls)[-1]]
    assert completed(feed(events)[1]) == [("tool_call", "i2", "first", "{}"), ("tool_call", "i1", "second", "{}")]


def test_text_that_the_provider_streamed_in_two_places_is_told_once() -> None:
    call = ToolCall("a", "look", {})
    events = [TextDelta("one "), ToolCallDelta(0, "look", ""), TextDelta("two"), answer("one two", call)[-1]]
    _, bodies = feed(events)
    assert ("text", "i1", "one two") in completed(bodies)
    assert [body.item for body in bodies if isinstance(body, ItemDiscarded)] == ["i3"]


def test_a_restart_voids_the_thinking() -> None:
    assembler, bodies = feed([ThinkingDelta("hm"), Restarted("overloaded"), *answer("yes")])
    assert [body.reason for body in bodies if isinstance(body, ItemDiscarded)] == ["overloaded"]
    assert completed(bodies) == [("text", "i2", "yes")]
    assert assembler.text == ""


def test_a_remark_is_told_and_is_no_part_of_the_answer() -> None:
    assembler, bodies = feed([Remark("It costs more.")])
    assert bodies == [Notice(text="It costs more.", level="warning")]
    assert not assembler.begun


def test_half_characters_never_leave() -> None:
    _, bodies = feed([TextDelta("\ud83d"), *answer(Text("\ud83d"))[-1:]])
    assert completed(bodies) == [("text", "i1", "\ufffd")]


def test_hidden_thinking_is_kept_without_an_item() -> None:
    hidden = Thinking("", signature="opaque", redacted=True)
    assembler, bodies = feed(answer(hidden, "yes"))
    assert [item[0] for item in completed(bodies)] == ["text"]
    assert assembler.answer is not None
    assert assembler.answer.message.blocks[0] == hidden


def test_a_stop_keeps_the_text_and_voids_the_rest() -> None:
    assembler, _ = feed([ThinkingDelta("hm"), TextDelta("so far"), ToolCallDelta(0, "look", "{")])
    bodies = assembler.settle("cancelled")
    assert completed(bodies) == [("text", "i2", "so far")]
    assert [body.item for body in bodies if isinstance(body, ItemDiscarded)] == ["i1", "i3"]
