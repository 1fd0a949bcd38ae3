"""What is written for a turn: on a terminal, into a pipe, as JSON."""

from __future__ import annotations

import json

import pytest

from lyma_server.protocol.events import (
    Event,
    ItemCompleted,
    ItemDelta,
    ItemDiscarded,
    ItemStarted,
    Notice,
    Route,
    TurnCompleted,
    TurnStarted,
    Usage,
)
from lyma_server.protocol.items import CommandOutputItem, EditItem, RunItem, TextItem, ToolCallItem, ToolResultItem
from lyma_server.protocol.messages import AskResult
from lyma_server.terminal.notes import note, summary
from lyma_server.terminal.view import JsonView, LiveView, WholeView


def written(view, *bodies):
    """What both streams hold after a turn with these events."""
    streams = {"out": "", "err": ""}
    for seq, body in enumerate(bodies, 1):
        for chunk in view.feed(Event(session="s", turn="t", seq=seq, body=body)):
            streams[chunk.stream] += chunk.text
    for chunk in view.finish():
        streams[chunk.stream] += chunk.text
    return streams["out"], streams["err"]


def route(class_="ok", next_="done", provider="openai", **more):
    return Route(provider=provider, model="m", class_=class_, next=next_, ms=1, **more)


def started(item="i"):
    return ItemStarted(item=TextItem(id=item))


def delta(text, item="i"):
    return ItemDelta(item=item, text=text)


def completed(text, item="i"):
    return ItemCompleted(item=TextItem(id=item, text=text))


ANSWER = (TurnStarted(prompt="p"), route(), started(), delta("Hel"), delta("lo"), completed("Hello"))
DISCARDED = (
    started("i"),
    delta("Half an ans", "i"),
    ItemDiscarded(item="i", reason="the connection broke"),
    started("j"),
    delta("Whole", "j"),
    completed("Whole", "j"),
)


def test_a_terminal_gets_text_as_it_comes_and_a_last_newline():
    assert written(LiveView(), *ANSWER[:-1]) == ("Hello\n", "")
    assert written(LiveView(), *ANSWER) == ("Hello\n", "")
    assert written(LiveView(), *ANSWER[:4])[0] == "Hel\n"


def test_a_pipe_gets_only_what_is_complete():
    assert written(WholeView(), *ANSWER) == ("Hello\n", "")
    assert written(WholeView(), *ANSWER[:-1]) == ("", "")
    assert written(WholeView(), *DISCARDED)[0] == "Whole\n"


def test_a_terminal_says_that_a_half_answer_is_void():
    out, err = written(LiveView(), *DISCARDED)
    assert out == "Half an ans\n\nWhole\n"
    assert err == "what the model had begun to say is void (the connection broke)\n"


@pytest.mark.parametrize("view", [LiveView, WholeView])
def test_two_texts_are_two_paragraphs(view):
    bodies = (started("a"), delta("One", "a"), completed("One", "a"), started("b"), delta("Two", "b"))
    assert written(view(), *bodies, completed("Two", "b"))[0] == "One\n\nTwo\n"


def test_the_complete_item_stands_over_its_deltas():
    assert written(LiveView(), started(), delta("Hel"), completed("Hello"))[0] == "Hello\n"
    assert written(LiveView(), completed("Hello"))[0] == "Hello\n"
    assert written(LiveView(), started(), delta("secret"), completed("[redacted]"))[0] == "secret\n\n[redacted]\n"


def test_deltas_of_other_items_are_not_the_answer():
    assert written(LiveView(), started(), delta("thought", "thinking"), delta("said"))[0] == "said\n"


def test_escapes_of_a_model_are_shown_to_a_terminal_and_kept_in_a_pipe():
    hostile = "a\x1b]0;owned\x07b\x9b31mc\rd\te\x7f"
    assert written(LiveView(), started(), *(delta(each) for each in hostile))[0] == "a␛]0;owned␇b�31mcd\te␡\n"
    assert written(WholeView(), completed(hostile))[0] == hostile + "\n"


def test_notes_never_carry_escapes_or_lines_of_others():
    call = ItemCompleted(item=ToolCallItem(id="c", name="read\x1bfile", arguments={"path": "a\x1b[2Jb"}))
    assert written(WholeView(), call)[1] == "read␛file a␛[2Jb\n"
    failed = ItemCompleted(item=ToolResultItem(id="r", call="c", text="no\nsuch\x1bfile", is_error=True))
    assert written(LiveView(), failed)[1] == "failed: no such␛file\n"


def test_routes_are_told_when_something_failed():
    bodies = (
        route("rate_limit", "rotate", key="…ab21", status=429),
        route("server_error", "fallback"),
        route(),
        route(),
    )
    assert written(WholeView(), *bodies)[1].splitlines() == [
        "openai key …ab21: rate limit (429), trying its next key",
        "openai: server error, trying the next provider",
        "answered by openai m",
    ]


def test_a_note_in_the_middle_of_a_line_begins_a_new_one():
    streams = written(LiveView(), started(), delta("abc"), Notice(text="careful", level="warning"), delta("def"))
    assert streams == ("abc\ndef\n", "warning: careful\n")


def test_json_is_an_event_a_line():
    out, err = written(JsonView(), *ANSWER)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["type"] for line in lines][:2] == ["turn.started", "route"]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[-1]["item"] == {"kind": "text", "id": "i", "text": "Hello"}
    assert err == ""


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (EditItem(id="e", call="c", path="a.py", uri="u", diff="--- a\n+++ b\n-x\n+y\n+z\n", applied=True), "changed a.py (+2 -1)"),
        (EditItem(id="e", call="c", path="a.py", uri="u"), "did not change a.py (+0 -0)"),
        (CommandOutputItem(id="o", call="c", command="false", exit_status=1), "exit status 1: false"),
        (CommandOutputItem(id="o", call="c", command="true", exit_status=0), None),
        (RunItem(id="r", run="r", hash="h", name="scout", status="done"), "agent scout: done"),
        (ToolCallItem(id="c", name="edit_file", arguments={"path": "a", "text": "l\n" * 99}), "edit_file a, text: 198 characters"),
        (ToolCallItem(id="c", name="run_command", arguments={"command": "sleep 9", "timeout_s": 1}), "run_command sleep 9, timeout_s: 1"),
        (ToolResultItem(id="t", call="c", text=f"{'x' * 300} instead", is_error=True), f"failed: {'x' * 300} instead"),
        (Notice(text="hello"), "hello"),
        (TurnCompleted(stop_reason="end_turn"), None),
    ],
)  # fmt: skip
def test_what_is_worth_a_line(body, line):
    assert note(body) == line


def test_the_summary_names_who_answered_and_what_it_took():
    usage = Usage(input_tokens=1234, output_tokens=5, cost_micros=2500)
    result = AskResult(session="s", turn="t", stop_reason="end_turn", text="x", usage=usage, route=(route(),))
    assert summary(result) == "openai m, 1,234 tokens in, 5 out, $0.0025"
    bare = AskResult(session="s", turn="t", stop_reason="end_turn", text="x", usage=Usage(estimated=True))
    assert summary(bare) == "about 0 tokens in, 0 out"
