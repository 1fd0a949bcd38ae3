"""The converter is exact, and its errors name the field."""

from __future__ import annotations

import pytest

from lyma_server.errors import AllFailed, UsageError
from lyma_server.protocol.convert import error_data, structure, unstructure
from lyma_server.protocol.events import Attempt, Event, ItemCompleted, Route
from lyma_server.protocol.items import ToolCallItem
from lyma_server.protocol.messages import AskParams, SessionsParams

POSITION = {"line": 1, "character": 2}
EVENT = {"session": "s", "turn": "t", "seq": 1}

REFUSED = [
    (AskParams, [], "The AskParams must be an object, not a list."),
    (AskParams, {}, "`prompt` is missing."),
    (AskParams, {"prompt": 3}, "`prompt` must be a string or a list, not an integer."),
    (AskParams, {"prompt": None}, "`prompt` must be a string or a list, not null."),
    (AskParams, {"prompt": {}}, "`prompt` must be a string or a list, not an object."),
    (AskParams, {"prompt": ["x"]}, "`prompt[0]` must be an object, not a string."),
    (AskParams, {"prompt": [{"text": "x"}]}, "`prompt[0].type` is missing."),
    (AskParams, {"prompt": [{"type": ["text"]}]}, "`prompt[0].type` must be one of text, file."),
    (AskParams, {"prompt": [{"type": "text", "text": 3}]}, "`prompt[0].text` must be a string, not an integer."),
    (AskParams, {"prompt": "\ud800"}, "`prompt` holds half of a surrogate pair, which no text can."),
    (AskParams, {"prompt": "x", "tools": "false"}, "`tools` must be a boolean, not a string."),
    (AskParams, {"prompt": "x", "tools": 1}, "`tools` must be a boolean, not an integer."),
    (AskParams, {"prompt": "x", "tools": None}, "`tools` must be a boolean, not null."),
    (AskParams, {"prompt": "x", "provider": ["a"]}, "`provider` must be a string or null, not a list."),
    (
        AskParams,
        {"prompt": "x", "budget": {"maxSteps": True}},
        "`budget.maxSteps` must be an integer or null, not a boolean.",
    ),
    (
        AskParams,
        {"prompt": "x", "budget": {"maxSteps": 1.0}},
        "`budget.maxSteps` must be an integer or null, not a number.",
    ),
    (AskParams, {"prompt": "x", "budget": {"maxTokens": 2**53}}, "`budget.maxTokens` is too large for an integer."),
    (
        AskParams,
        {"prompt": "x", "context": {"active": {"uri": "u", "selections": [{"start": POSITION, "end": {"line": 1}}]}}},
        "`context.active.selections[0].end.character` is missing.",
    ),
    (SessionsParams, {"action": "lst"}, '`action` must be "list" or "load" or "fork" or "delete" or "undo" or "diff".'),
    (Event, {**EVENT, "seq": "1", "type": "notice", "text": "x"}, "`seq` must be an integer, not a string."),
    (Event, {**EVENT, "type": "notice", "text": 3}, "`text` must be a string, not an integer."),
    (Event, {**EVENT, "type": "item.started", "item": {}}, "`item.kind` is missing."),
]


@pytest.mark.parametrize(("cls", "value", "message"), REFUSED)
def test_a_wrong_value_is_refused_by_name(cls, value, message):
    with pytest.raises(UsageError) as caught:
        structure(cls, value)
    assert caught.value.message == message
    assert caught.value.code == -32602
    assert f"`{caught.value.data['field']}`" in message or caught.value.data["field"] == ""


def test_unknown_fields_are_ignored_unless_closed():
    value = {"prompt": "x", "budget": {"maxStep": 3}}
    assert structure(AskParams, value).budget is not None
    with pytest.raises(UsageError, match="`budget` has unknown fields: maxStep"):
        structure(AskParams, value, closed=True)


def test_an_event_is_flat():
    event = Event(
        session="s", turn="t", seq=1, body=Route(provider="p", model="m", class_="ok", next="done", ms=3, key="…ab21")
    )
    wire = unstructure(event)
    assert wire == {
        "session": "s",
        "turn": "t",
        "seq": 1,
        "type": "route",
        "provider": "p",
        "model": "m",
        "class": "ok",
        "next": "done",
        "ms": 3,
        "key": "…ab21",
    }
    assert structure(Event, wire) == event


def test_json_inside_a_message_passes_untouched():
    arguments = {"class_": [1, {"jsonrpc": "2.0"}], "snake_case": None}
    event = Event(
        session="s",
        turn="t",
        seq=2,
        replay=True,
        body=ItemCompleted(item=ToolCallItem(id="i", name="n", arguments=arguments)),
    )
    wire = unstructure(event)
    assert wire["item"]["arguments"] is arguments
    assert wire["replay"] is True
    assert structure(Event, wire) == event


def test_none_is_omitted_and_lists_are_lists():
    wire = unstructure(structure(AskParams, {"prompt": "x", "context": {}}))
    assert wire == {"prompt": "x", "tools": True, "context": {"documents": [], "diagnostics": []}}


def test_an_error_is_camel_case_throughout():
    attempt = Attempt(provider="p", model="m", class_="timeout", next="fail", ms=3)
    error = AllFailed("Nobody answered.", detail="secret", attempts=[{"retry_after_ms": 5}, attempt], retry_after_ms=5)
    assert error_data(error) == {
        "kind": "provider_error",
        "message": "Nobody answered.",
        "retryable": True,
        "retryAfterMs": 5,
        "attempts": [
            {"retryAfterMs": 5},
            {"provider": "p", "model": "m", "class": "timeout", "next": "fail", "ms": 3},
        ],
    }


def test_lsp_tokens_are_no_mistake():
    assert structure(SessionsParams, {"action": "list", "partialResultToken": 1, "workDoneToken": "t"}, closed=True)
    assert structure(AskParams, {"prompt": "x", "workDoneToken": "t"}, closed=True).work_done_token == "t"
