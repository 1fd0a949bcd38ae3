"""What is rendered for other languages has every message, every field and nothing Python-like."""

from __future__ import annotations

import re

import attrs
import pytest

from lyma_server.protocol.base import wire_name
from lyma_server.protocol.events import Event
from lyma_server.protocol.luacats import render_lua
from lyma_server.protocol.registry import METHODS
from lyma_server.protocol.render import fill
from lyma_server.protocol.shape import ALIASES, shape_of
from lyma_server.protocol.tables import error_rows
from lyma_server.protocol.typescript import render_typescript
from tests.protocol.strategies import MESSAGES

TYPESCRIPT = render_typescript()
LUA = render_lua()
TS_NAMES = set(re.findall(r"^export (?:interface|type) (\w+)", TYPESCRIPT, re.MULTILINE))
LUA_NAMES = set(re.findall(r"^---@(?:class|alias) lyma\.(\w+)", LUA, re.MULTILINE))


def ts_fields(name):
    body = re.search(rf"^export interface {name} \{{(.*?)\}}$", TYPESCRIPT, re.DOTALL | re.MULTILINE)
    return dict(re.findall(r"^  (\w+)(\??):", body[1], re.MULTILINE))


def lua_fields(name):
    body = re.search(rf"^---@class lyma\.{name}\b.*\n((?:---@field .*\n)*)", LUA, re.MULTILINE)
    return dict(re.findall(r"^---@field (\w+)(\??) ", body[1], re.MULTILINE))


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_every_field_is_there_and_optional_alike(cls):
    name = "EventPlace" if cls is Event else cls.__name__
    expected = {field.name: "?" if field.optional else "" for field in shape_of(cls).fields}
    assert ts_fields(name) == expected
    assert lua_fields(name) == expected
    assert {wire_name(field.name) for field in attrs.fields(cls)} - set(expected) <= {"body"}


def test_every_name_that_is_used_is_declared():
    used = set(re.findall(r"lyma\.([A-Z]\w+)", LUA))
    assert used <= LUA_NAMES
    words = set(re.findall(r"\b([A-Z][a-z]\w+)\b", re.sub(r'/\*\*.*?\*/|"[^"]*"|//.*', "", TYPESCRIPT)))
    assert words <= TS_NAMES | {"Record", "Readonly"}
    assert {*ALIASES.values(), "Event", "EventPlace", "ErrorKind", "Requests", "Notifications"} <= TS_NAMES


def test_methods_and_errors_are_there():
    for method in METHODS:
        assert f'"{method.name}": {{ params: {method.params.__name__}' in TYPESCRIPT
        assert f'= "{method.name}"' in LUA
    for row in error_rows():
        assert f"{row.kind}: {row.code}," in TYPESCRIPT
        assert f"{row.kind} = {row.code}," in LUA


def test_every_error_of_the_tree_has_one_row_and_a_meaning():
    rows = error_rows()
    kinds = [row.kind for row in rows]
    assert len(kinds) == len(set(kinds))
    assert {"session_busy", "approval_required", "provider_error", "config_error", "invalid_params"} <= set(kinds)
    assert "tool_error" not in kinds
    assert all(row.doc.endswith(".") for row in rows)


def test_only_known_parts_are_filled():
    assert fill("<!-- generated: events -->\nold\n<!-- end -->\nrest").endswith("<!-- end -->\nrest")
    with pytest.raises(KeyError):
        fill("<!-- generated: nothing -->\n<!-- end -->")


def test_the_body_of_an_event_never_hides_its_place():
    place = {field.name for field in shape_of(Event).fields}
    for cls in MESSAGES:
        if any(field.tag and field.name == "type" for field in shape_of(cls).fields):
            assert not place & {field.name for field in shape_of(cls).fields}
