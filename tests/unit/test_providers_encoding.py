"""What can be sent at all."""

from __future__ import annotations

import json

from lyma_server.router.providers.encoding import encodable


def test_half_characters_are_replaced_wherever_they_stand() -> None:
    body = {
        "messages": [{"content": "a\udcff", "calls": ({"na\ud83dme": "\ude00"},)}],
        "n": 1,
        "none": None,
        "on": True,
    }
    sent = encodable(body)
    assert json.dumps(sent, ensure_ascii=False).encode()
    assert sent == {
        "messages": [{"content": "a\ufffd", "calls": [{"na\ufffdme": "\ufffd"}]}],
        "n": 1,
        "none": None,
        "on": True,
    }


def test_whole_characters_stay() -> None:
    assert encodable({"text": "é😀\u2028\0"}) == {"text": "é😀\u2028\0"}
