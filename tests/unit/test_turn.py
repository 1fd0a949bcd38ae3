"""The loop of model and tools, with a router that plays scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lyma_server.agent.assembly import Assembler
from lyma_server.config.model import AgentSettings
from lyma_server.errors import (
    AllFailed,
    LymaError,
    ProviderError,
    SessionBusy,
    SessionNotFound,
    StreamInterrupted,
    UsageError,
)
from lyma_server.protocol.events import (
    Attempt,
    ItemDiscarded,
    Notice,
    Route,
    TurnCompleted,
    TurnStarted,
    Usage,
)
from lyma_server.protocol.items import EditItem, TextItem, ToolResultItem
from lyma_server.protocol.messages import AskBudget
from lyma_server.router.chat import Message, Restarted, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolResult
from tests.fakes import KEY, Desk, Ears, answer

if TYPE_CHECKING:
    from pathlib import Path

OK = Attempt(provider="fake", model="model-1", class_="ok", next="done", ms=3, key="…ab21", status=200)
LIMITED = Attempt(provider="fake", model="model-1", class_="rate_limit", next="rotate", ms=2, status=429)


def call(name="read_file", **arguments) -> ToolCall:
    return ToolCall("theirs", name, arguments)


def end(desk: Desk) -> TurnCompleted:
    """The last event, which must be the only one of its kind, with numbers that have no gaps."""
    assert [event.seq for event in desk.ears.events] == list(range(1, len(desk.ears.events) + 1))
    assert desk.ears.types.count("turn.started") == desk.ears.types.count("turn.completed") == 1
    last = desk.ears.bodies[-1]
    assert isinstance(last, TurnCompleted)
    return last


async def test_an_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [LIMITED, OK, *answer("Good day to you.")])
    result = await desk.ask()
    assert (result.text, result.stop_reason) == ("Good day to you.", "end_turn")
    assert result.route == (LIMITED, OK)
    assert [body.class_ for body in desk.ears.bodies if isinstance(body, Route)] == ["rate_limit", "ok"]
    assert desk.ears.types[:3] == ["turn.started", "route", "route"]
    assert end(desk).usage == result.usage == Usage(input_tokens=10, output_tokens=5)


async def test_tools_run_and_their_results_go_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("I look.", call(path="a.txt")), answer("It says hi."), files={"a.txt": "hi\n"})
    result = await desk.ask()
    assert result.text == "I look.\n\nIt says hi."
    assert result.usage == Usage(input_tokens=20, output_tokens=10)
    [_, said, back] = desk.router.requests[1].messages
    [made] = [block for block in said.blocks if isinstance(block, ToolCall)]
    assert back.blocks == (ToolResult(made.id, "[a.txt, lines 1-1 of 1]\nhi\n"),)
    assert desk.completed(ToolResultItem)[0].call == made.id != "theirs"


async def test_an_edit_is_made_told_and_summed_up(tmp_path: Path) -> None:
    edit = call("edit_file", path="a.txt", edits=[{"old_text": "two", "new_text": "2"}])
    desk = Desk(tmp_path, answer(edit), answer("Done."), files={"a.txt": "one\ntwo\n"})
    result = await desk.ask()
    assert desk.workspace.files[tmp_path / "work/a.txt"] == "one\n2\n"
    [summary] = result.edits
    assert (summary.path, summary.added, summary.removed) == ("a.txt", 1, 1)
    [item] = desk.completed(EditItem)
    assert item.applied
    assert "-two\n+2\n" in item.diff


@pytest.mark.parametrize(("says", "made"), [(True, True), (False, False), (None, False)])
async def test_edits_wait_for_a_person_where_the_settings_want_it(
    tmp_path: Path, says: bool | None, made: bool
) -> None:
    settings = AgentSettings(confirm="edits")
    write = call("write_file", path="new.txt", text="text\n")
    desk = Desk(tmp_path, answer(write), answer("Done."), settings=settings, says=says)
    result = await desk.ask()
    assert (tmp_path / "work/new.txt" in desk.workspace.files) is made
    assert "+text" in desk.person.questions[0].text
    assert desk.completed(EditItem)[0].applied is made
    assert len(result.edits) == made


@pytest.mark.parametrize("confirm", ["edits", "all", "never"])
async def test_an_editor_that_asks_by_itself_is_left_to_it(tmp_path: Path, confirm: str) -> None:
    call = ToolCall("1", "edit_file", {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}]})
    desk = Desk(
        tmp_path, answer(call), answer("Done."), files={"a.txt": "one"}, settings=AgentSettings(confirm=confirm), says=False
    )  # fmt: skip
    desk.workspace.confirming = set(desk.workspace.files)
    await desk.ask()
    assert desk.person.questions == []
    assert [change.confirm for change in desk.workspace.changes] == [confirm != "never"]


async def test_an_interrupted_answer_is_voided_and_asked_once_more(tmp_path: Path) -> None:
    cut = [TextDelta("Half an"), StreamInterrupted("The connection broke.", partial="Half an")]
    desk = Desk(tmp_path, cut, answer("A whole answer."))
    result = await desk.ask()
    assert result.text == "A whole answer."
    assert [body.reason for body in desk.ears.bodies if isinstance(body, ItemDiscarded)] == ["interrupted"]
    assert [item.text for item in desk.completed(TextItem)] == ["A whole answer."]
    assert result.usage.estimated
    assert desk.router.requests[0] == desk.router.requests[1]


async def test_a_second_interruption_ends_the_turn(tmp_path: Path) -> None:
    cut = [TextDelta("Half"), StreamInterrupted("The connection broke.", partial="Half")]
    desk = Desk(tmp_path, cut, cut)
    with pytest.raises(StreamInterrupted, match="broke"):
        await desk.ask()
    assert end(desk).stop_reason == "interrupted"
    assert desk.ears.types.count("item.discarded") == 2


async def test_a_stream_that_just_ends_is_an_interruption(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [TextDelta("Half")], answer("Whole."))
    assert (await desk.ask()).text == "Whole."


async def test_when_every_provider_fails_the_turn_ends_before_the_error(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [LIMITED, ThinkingDelta("hm"), AllFailed("Nobody answered.", attempts=[])])
    turn = desk.start()
    for _ in range(2):
        with pytest.raises(AllFailed, match="Nobody"):
            await turn.result()
    assert end(desk).stop_reason == "interrupted"
    assert "item.discarded" in desk.ears.types


async def test_a_fault_of_our_own_closes_the_stream_and_ends_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, answer("Never heard."))
    streams: list = []
    stream = desk.router.stream
    monkeypatch.setattr(desk.router, "stream", lambda *given: streams.append(stream(*given)) or streams[-1])
    monkeypatch.setattr(Assembler, "feed", lambda _self, _event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await desk.ask()
    assert desk.router.closed == 1
    assert end(desk).stop_reason == "interrupted"


async def test_a_restart_voids_thinking_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [ThinkingDelta("hm"), Restarted("overloaded"), *answer("Yes.")])
    assert (await desk.ask()).text == "Yes."
    assert [body.reason for body in desk.ears.bodies if isinstance(body, ItemDiscarded)] == ["overloaded"]


async def test_tools_never_run_before_the_answer_is_whole(tmp_path: Path) -> None:
    write = call("write_file", path="a.txt", text="x")
    cut = [*answer(write)[:-1], StreamInterrupted("The connection broke.")]
    desk = Desk(tmp_path, cut, cut)
    with pytest.raises(StreamInterrupted):
        await desk.ask()
    assert desk.workspace.changes == []


async def test_arguments_that_are_no_json_go_back_twice(tmp_path: Path) -> None:
    broken = ToolCall("theirs", "read_file", None, raw='{"path": ')
    desk = Desk(tmp_path, answer(broken), answer(broken), answer("I give up."))
    assert (await desk.ask()).text == "I give up."
    assert all(item.is_error and "JSON" in item.text for item in desk.completed(ToolResultItem))


async def test_arguments_that_are_no_json_three_times_end_the_turn(tmp_path: Path) -> None:
    broken = ToolCall("theirs", "read_file", None, raw="{")
    desk = Desk(tmp_path, answer(broken), answer(broken), answer(broken))
    with pytest.raises(ProviderError, match="no JSON three times"):
        await desk.ask()
    assert end(desk).stop_reason == "interrupted"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (call("fly"), "There is no tool fly"),
        (call(), "'path' is a required property"),
        (call(path=7), "path: 7 is not of type 'string'"),
        (call(path="a", mode="w"), "Additional properties"),
        (call(path="missing.txt"), "There is no file"),
        (call("edit_file", path="a.txt", edits=[]), "edits: "),
    ],
)
async def test_a_wrong_call_is_told_to_the_model(tmp_path: Path, wrong: ToolCall, complaint: str) -> None:
    desk = Desk(tmp_path, answer(wrong), answer("Sorry."), files={"a.txt": ""})
    assert (await desk.ask()).text == "Sorry."
    [result] = desk.completed(ToolResultItem)
    assert result.is_error
    assert complaint in result.text


async def test_a_tool_call_that_was_cut_off_is_not_run(tmp_path: Path) -> None:
    write = call("write_file", path="a.txt", text="half")
    desk = Desk(tmp_path, answer(write, finish="max_tokens"), answer("Smaller then."))
    assert (await desk.ask()).stop_reason == "end_turn"
    assert desk.workspace.changes == []
    assert "cut off" in desk.completed(ToolResultItem)[0].text


STOPS = [
    ("max_tokens", answer("Long", finish="max_tokens"), None),
    ("refusal", answer("No.", finish="refusal"), None),
    ("max_steps", answer(call(path="a.txt")), AskBudget(max_steps=1)),
    ("budget", answer(call(path="a.txt")), AskBudget(max_tokens=12)),
    ("budget", answer(call(path="a.txt"), usage=Usage(cost_micros=9)), AskBudget(max_cost_micros=9)),
    ("budget", answer(call(path="a.txt")), AskBudget(max_cost_micros=10**9)),
]


@pytest.mark.parametrize(
    ("reason", "script", "budget"), STOPS, ids=lambda value: value if isinstance(value, str) else ""
)
async def test_limits_stop_a_turn_and_its_calls_are_answered(tmp_path: Path, reason, script, budget) -> None:
    desk = Desk(tmp_path, script, answer("Go on."), files={"a.txt": "x"})
    first = await desk.ask(budget=budget)
    assert first.stop_reason == end(desk).stop_reason == reason
    desk.ears = Ears()
    assert (await desk.ask("More", session=first.session)).text == "Go on."
    asked = {
        block.id
        for message in desk.router.requests[1].messages
        for block in message.blocks
        if isinstance(block, ToolCall)
    }
    answered = {
        block.call
        for message in desk.router.requests[1].messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    }
    assert asked == answered


async def test_a_budget_in_tokens_bounds_the_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Short."))
    await desk.ask(budget=AskBudget(max_tokens=99))
    assert desk.router.requests[0].max_output_tokens == 99


async def test_a_session_goes_on_with_all_that_was_said(tmp_path: Path) -> None:
    thought = Thinking("hm", signature="opaque")
    desk = Desk(tmp_path, answer(thought, call(path="a.txt")), answer("One."), answer("Two."), files={"a.txt": "x"})
    first = await desk.ask("First", prefer="fake")
    live = [
        *desk.router.requests[1].messages,
        Message("assistant", (Text("One."),), desk.router.requests[1].messages[1].origin),
    ]
    await desk.ask("Second", session=first.session)
    again = list(desk.router.requests[2].messages)
    assert again[:-1] == live
    assert again[-1].blocks[-1] == Text("Second")
    assert thought in again[1].blocks


async def test_one_turn_at_a_time_in_a_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("One."), answer("Two."))
    turn = desk.start()
    with pytest.raises(SessionBusy) as busy:
        desk.start(session=turn.session)
    assert busy.value.data == {"turn": turn.turn}
    await turn.result()
    desk.ears = Ears()
    assert (await desk.ask(session=turn.session)).text == "Two."


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"session": "0" * 26}, SessionNotFound),
        ({"session": "../../etc/passwd"}, SessionNotFound),
        ({"prompt": " \n"}, UsageError),
        ({"prompt": ()}, UsageError),
        ({"budget": AskBudget(max_steps=0)}, UsageError),
    ],
)
async def test_what_cannot_begin_is_refused_at_once(tmp_path: Path, params: dict, error: type[LymaError]) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(error):
        desk.start(**params)
    assert desk.ears.events == []
    assert list(tmp_path.rglob("*.jsonl")) == []


async def test_no_secret_leaves(tmp_path: Path) -> None:
    write = call("write_file", path="b.txt", text=f"key = {KEY}")
    spoken = answer(f"Your key is {KEY} indeed.", Thinking(f"It is {KEY}", signature="s"), write, call(path="a.txt"))
    desk = Desk(tmp_path, spoken, answer("Fine."), files={"a.txt": f"token: {KEY}\n"})
    result = await desk.ask(f"Is {KEY} right?")
    assert "Your key is [redacted] indeed." in result.text
    everything = [repr_deep(event.body) for event in desk.ears.events]
    everything += [repr_deep(request) for request in desk.router.requests]
    everything += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in everything if KEY in text]
    assert desk.workspace.changes == []
    assert not any(isinstance(block, Thinking) for block in desk.router.requests[1].messages[1].blocks)


def repr_deep(value: object) -> str:
    slots = getattr(type(value), "__slots__", None) or getattr(value, "__dict__", None)
    if isinstance(value, (str, int, float, type(None))):
        return repr(value)
    if isinstance(value, dict):
        return str({repr_deep(key): repr_deep(part) for key, part in value.items()})
    if isinstance(value, (tuple, list)):
        return str([repr_deep(part) for part in value])
    return str([repr_deep(getattr(value, name, None)) for name in slots or () if not name.startswith("__")])


async def test_without_tools_none_are_offered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("Just so."))
    await desk.ask(tools=False)
    assert desk.router.requests[0].tools == ()
    assert "notice" not in desk.ears.types


async def test_in_the_home_folder_there_are_no_tools_and_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "work"))
    desk = Desk(tmp_path, answer("Just so."), files={"AGENTS.md": "Obey."})
    await desk.ask()
    assert desk.router.requests[0].tools == ()
    assert "Obey" not in desk.router.requests[0].instructions
    [notice] = [body for body in desk.ears.bodies if isinstance(body, Notice)]
    assert "home folder" in notice.text


async def test_a_file_that_is_not_there_ends_the_turn_with_one_sentence(tmp_path: Path) -> None:
    from lyma_server.protocol.messages import FileBlock

    desk = Desk(tmp_path)
    with pytest.raises(UsageError, match="There is no file"):
        await desk.ask((FileBlock(uri=(tmp_path / "work/none.txt").as_uri()),))
    assert desk.ears.types == ["turn.started", "turn.completed"]
    assert isinstance(desk.ears.bodies[0], TurnStarted)


async def test_a_session_that_cannot_be_saved_still_answers(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    desk = Desk(tmp_path, answer("Here."))
    result = await desk.ask()
    assert result.text == "Here."
    assert next(body.text for body in desk.ears.bodies if isinstance(body, Notice)).startswith(
        "This session is not being saved"
    )


async def test_replay_equals_what_was_shown(tmp_path: Path) -> None:
    cut = [TextDelta("Half an"), StreamInterrupted("The connection broke.")]
    desk = Desk(tmp_path, cut, answer("Whole.", call(path="a.txt")), answer("Done."), files={"a.txt": "x"})
    result = await desk.ask()
    replayed = list(desk.sessions.replay(result.session))
    assert [event.seq for event in replayed] == list(range(1, len(replayed) + 1))
    assert all(event.replay for event in replayed)
    live = [body for body in desk.ears.bodies if body.type != "item.delta"]
    assert [repr_deep(event.body) for event in replayed if event.body.type != "item.delta"] == [
        repr_deep(body) for body in live
    ]
    assert [event.body.text for event in replayed if event.body.type == "item.delta"] == ["Half an"]


OVERFLOW = Attempt(provider="fake", model="model-1", class_="context_overflow", next="fail", ms=2, status=400)
TOO_LONG = [OVERFLOW, AllFailed("fake has a context window too small for this.")]


async def test_a_conversation_that_is_too_long_is_shortened_step_by_step(tmp_path: Path) -> None:
    look = answer(call(path="a.txt"))
    desk = Desk(tmp_path, look, look, answer("One."), TOO_LONG, TOO_LONG, answer("Two."), files={"a.txt": "x" * 5000})
    first = await desk.ask("First")
    desk.ears = Ears()
    assert (await desk.ask("Second", session=first.session)).text == "Two."
    sizes = [sum(len(getattr(b, "text", "")) for m in r.messages for b in m.blocks) for r in desk.router.requests[3:]]
    assert sizes[0] > 10_000 > 1000 > sizes[1] > sizes[2]
    assert [m.blocks[-1] for m in desk.router.requests[5].messages][1:] == [Text("Second")]
    assert sum(isinstance(body, Notice) for body in desk.ears.bodies) == 2


async def test_results_that_the_model_has_not_seen_are_not_left_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer(call(path="a.txt")), TOO_LONG, files={"a.txt": "x" * 5000})
    with pytest.raises(AllFailed):
        await desk.ask()
    assert end(desk).stop_reason == "interrupted"


async def test_other_failures_shorten_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer("One."), [LIMITED, AllFailed("Nobody.")])
    first = await desk.ask("First")
    with pytest.raises(AllFailed):
        await desk.ask("Second", session=first.session)


async def test_a_tool_that_fails_inside_is_told_to_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, answer(call(path="a.txt")), answer("Odd."), files={"a.txt": ""})
    monkeypatch.setattr(desk.workspace, "read", lambda _path: 1 / 0)
    monkeypatch.setattr(desk.agent, "settings", AgentSettings(instructions=()))
    assert (await desk.ask()).text == "Odd."
    assert "a fault of Lyma" in desk.completed(ToolResultItem)[0].text
