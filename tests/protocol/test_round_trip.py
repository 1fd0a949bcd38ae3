"""Every message survives the wire, and what is on the wire is what the schema says."""

from __future__ import annotations

import json
from functools import cache

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.errors import UsageError
from lyma_server.protocol.convert import structure, unstructure
from lyma_server.protocol.schema import render_schema
from lyma_server.protocol.shape import sent_classes
from tests.protocol.strategies import JSON, MESSAGES, of_type

SCHEMA = render_schema()
each_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)


@cache
def validator(cls: type) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{cls.__name__}", "$defs": SCHEMA["$defs"]})


@each_message
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_message_survives_the_wire(cls, data):
    message = data.draw(of_type(cls))
    wire = json.loads(json.dumps(unstructure(message)))
    assert structure(cls, wire) == message
    assert structure(cls, {**wire, "aFieldOfLater": 1}) == message
    validator(cls).validate(wire)


@each_message
@settings(max_examples=20, deadline=None)
@given(value=JSON)
def test_any_other_json_is_refused_in_a_sentence(cls, value):
    check_agreement(cls, value)


def check_agreement(cls, value):
    """Converter and schema agree; only on what the server sends may the converter be the more patient one."""
    complaint = None
    try:
        structure(cls, value)
    except UsageError as error:
        complaint = error.message
    if complaint is not None:
        assert complaint.endswith(".")
        assert not validator(cls).is_valid(value)
    elif cls in sent_classes():
        assert validator(cls).is_valid(value)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_one_spoiled_value_anywhere_is_judged_alike(data):
    cls = data.draw(st.sampled_from(MESSAGES))
    wire = json.loads(json.dumps(unstructure(data.draw(of_type(cls)))))
    check_agreement(cls, spoil(wire, data))


def spoil(wire, data):
    """Replace one value, at a random depth, by another simple one."""
    if isinstance(wire, dict) and wire:
        name = data.draw(st.sampled_from(sorted(wire)))
        return {**wire, name: spoil(wire[name], data)}
    if isinstance(wire, list) and wire:
        index = data.draw(st.integers(0, len(wire) - 1))
        return [*wire[:index], spoil(wire[index], data), *wire[index + 1 :]]
    return data.draw(st.sampled_from([None, True, 7, "x", [], {}, 1.5, ["x"], {"type": "text"}]))
