"""A request that is too large loses the least important first, and never what it is about."""

from __future__ import annotations

from lyma_server.router.chat import ChatRequest, Message, Text, ToolCall, ToolResult
from lyma_server.router.shrink import LONG_OUTPUT, OLD_OUTPUT, shrink


def turn(number: int, output: str) -> tuple[Message, ...]:
    return (
        Message("user", (Text(f"question {number}"),)),
        Message("assistant", (ToolCall(f"c{number}", "read", {}),)),
        Message("user", (ToolResult(f"c{number}", output),)),
        Message("assistant", (Text(f"answer {number}"),)),
    )


def request(*messages: Message) -> ChatRequest:
    return ChatRequest("Instructions.", messages, "s")


def outputs(of: ChatRequest) -> list[int]:
    return [len(block.text) for message in of.messages for block in message.blocks if isinstance(block, ToolResult)]


def test_an_answer_that_is_too_long_is_all_that_shrinks() -> None:
    whole = request(*turn(1, "x" * 9000), *turn(2, "y"))
    smaller = shrink(whole, room=100)
    assert smaller is not None
    assert (smaller.max_output_tokens, smaller.messages) == (100, whole.messages)


def test_old_output_goes_first_then_all_that_is_long() -> None:
    whole = request(*turn(1, "x" * 9000), *turn(2, "y" * 9000))
    once = shrink(whole)
    assert once is not None
    assert outputs(once) == [OLD_OUTPUT, 9000]
    twice = shrink(once)
    assert twice is not None
    assert outputs(twice) == [OLD_OUTPUT, LONG_OUTPUT]


def test_then_the_oldest_turns_go_and_what_was_asked_in_them_stays_as_a_line() -> None:
    turns = [message for number in range(1, 6) for message in turn(number, "x")]
    smaller = shrink(request(*turns, Message("user", (Text("last question"),))))
    assert smaller is not None
    texts = [block.text for message in smaller.messages for block in message.blocks if isinstance(block, Text)]
    assert texts[0] == "question 1"
    assert "- question 2\n- question 3" in texts[1]
    assert texts[-1] == "last question"
    assert "answer 2" not in texts
    assert smaller.instructions == "Instructions."
    calls = {block.id for message in smaller.messages for block in message.blocks if isinstance(block, ToolCall)}
    results = {block.call for message in smaller.messages for block in message.blocks if isinstance(block, ToolResult)}
    assert calls == results


def test_it_comes_to_an_end() -> None:
    smaller: ChatRequest | None = request(*(message for number in range(40) for message in turn(number, "x" * 9000)))
    for _ in range(50):
        assert smaller is not None
        last = smaller
        smaller = shrink(smaller)
        if smaller is None:
            break
    assert smaller is None
    assert last.messages[-1] == Message("assistant", (Text("answer 39"),))


def test_a_single_question_cannot_shrink() -> None:
    assert shrink(request(Message("user", (Text("x" * 90_000),)))) is None
