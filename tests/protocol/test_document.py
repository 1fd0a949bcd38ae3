"""protocol.md is true: its tables are made from the code, and its examples are messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lsprotocol import converters, types

from lyma_server.protocol.convert import structure, unstructure
from lyma_server.protocol.messages import LymaCapabilities
from lyma_server.protocol.registry import METHOD_BY_NAME
from lyma_server.protocol.render import PARTS, rendered
from lyma_server.protocol.tables import error_rows

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "protocol.md").read_text(encoding="utf-8")
EXAMPLES = [
    (match[1], match[2], match[3])
    for match in re.finditer(r"<!-- (\w+)(?:: ([\w/]+))? -->\n```json\n(.*?)```", DOCUMENT, re.DOTALL)
]


def test_nothing_generated_differs():
    for path, text in rendered(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path} differs; run `python -m lyma_server.protocol.render`"
    assert all(f"<!-- generated: {name} -->" in DOCUMENT for name in PARTS)


def test_every_json_block_is_marked_and_so_tested():
    assert len(EXAMPLES) == DOCUMENT.count("```json") >= 9


@pytest.mark.parametrize(("mark", "method", "text"), EXAMPLES)
def test_an_example_is_a_message(mark, method, text):
    CHECKS[mark](json.loads(text), method)


def check_call(message, _method):
    method = METHOD_BY_NAME.get(message["method"])
    assert message["jsonrpc"] == "2.0"
    if method is None:
        cls = types.METHOD_TO_TYPES[message["method"]][0]
        assert converters.get_converter().structure(message, cls)
        return
    assert ("id" in message) == (method.kind == "request")
    assert holds(structure(method.params, message["params"], closed=method.kind == "request"), message["params"])


def check_response(message, method):
    result = structure(METHOD_BY_NAME[method].result, message["result"])
    assert unstructure(result) == message["result"]


def check_error(message, _method):
    error = message["error"]
    row = next(row for row in error_rows() if row.kind == error["data"]["kind"])
    assert (row.code, row.retryable) == (error["code"], error["data"]["retryable"])


def check_capabilities(value, _method):
    assert unstructure(structure(LymaCapabilities, value)) == value


def holds(message, example):
    """Nothing in the example is lost; defaults may be added."""
    return contains(unstructure(message), example)


def contains(whole, part):
    if isinstance(part, dict):
        return all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


CHECKS = {
    "request": check_call,
    "notification": check_call,
    "response": check_response,
    "error": check_error,
    "capabilities": check_capabilities,
}
