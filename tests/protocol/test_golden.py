"""What is on the wire, written down: the same files are read by the clients' tests, and a change of the wire shows here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lyma_server.protocol.convert import structure, unstructure
from lyma_server.protocol.events import EventBody
from lyma_server.protocol.shape import members_of, tag_value
from tests.protocol.strategies import MESSAGES

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/messages.json").read_text(encoding="utf-8"))
BY_NAME = {cls.__name__: cls for cls in MESSAGES}


def test_every_message_and_every_event_is_there():
    assert set(GOLDEN) == set(BY_NAME)
    assert {event["type"] for event in GOLDEN["Event"]} == {tag_value(cls) for cls in members_of(EventBody)}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_message_is_written_as_it_always_was(name):
    for wire in GOLDEN[name]:
        assert unstructure(structure(BY_NAME[name], wire, closed=name != "Event")) == wire
