"""Valid traffic, mutated at random: whatever still is a request gets exactly one reply, and the server lives on.

What a mutated body is, is decided here from JSON-RPC alone, not by the code under test.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from typing import Any

import pytest

from tests.raw_client import RawClient, frame

SEED = 20240
ASK = {"prompt": "say hello", "context": {"active": {"uri": "file:///a.py", "selections": []}}, "tools": False}
DOCUMENT = {"uri": "file:///tmp/none.py", "languageId": "python", "version": 1, "text": "x\n"}
TRAFFIC: list[tuple[str, dict[str, Any] | None]] = [
    ("lyma/ask", ASK),
    ("lyma/status", {}),
    ("lyma/models", {"provider": "fake"}),
    ("workspace/executeCommand", {"command": "lyma.ask", "arguments": ["say hello"], "workDoneToken": 5}),
    ("workspace/executeCommand", {"command": "lyma.status", "arguments": []}),
    ("textDocument/hover", {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}),
    ("initialize", {"processId": 1, "capabilities": {"window": {"showDocument": {"support": True}}}}),
]
NOTIFICATIONS: list[tuple[str, dict[str, Any] | None]] = [
    ("textDocument/didOpen", {"textDocument": DOCUMENT}),
    (
        "textDocument/didChange",
        {"textDocument": {"uri": DOCUMENT["uri"], "version": 2}, "contentChanges": [{"text": "y"}]},
    ),
    ("$/cancelRequest", {"id": 5}),
    ("window/workDoneProgress/cancel", {"token": 5}),
]
VALUES = [None, True, 0, -1, 1.5, 10**30, "", "é😀", "\ud800", [], {}, [[]], {"jsonrpc": "2.0", "id": 1, "method": "x"}]
FORBIDDEN = {"exit", "shutdown"}


def message(chance: random.Random, identity: int) -> dict[str, Any]:
    if chance.random() < 0.8:
        method, params = chance.choice(TRAFFIC)
        return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    method, params = chance.choice(NOTIFICATIONS)
    return {"jsonrpc": "2.0", "method": method, "params": params}


def mutate_tree(chance: random.Random, value: Any) -> Any:
    """A copy of `value` in which one place is changed."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.2:
        return chance.choice(VALUES)
    copy = dict(value) if isinstance(value, dict) else list(value)
    key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
    kind = chance.random()
    if kind < 0.15:
        del copy[key]
    elif kind < 0.25 and isinstance(copy, dict):
        copy[chance.choice(["", "id", "method", "x", "jsonrpc", "result", "error"])] = copy[key]
    else:
        copy[key] = mutate_tree(chance, copy[key])
    return copy


def mutate_bytes(chance: random.Random, body: bytes) -> bytes:
    at, kind = chance.randrange(len(body)), chance.random()
    if kind < 0.4:
        return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
    if kind < 0.7:
        return body[:at] + body[at + chance.randrange(1, 9) :]
    return body[:at] + body[chance.randrange(len(body)) :][:20] + body[at:]


def mutation(chance: random.Random, identity: int) -> bytes:
    given = message(chance, identity)
    kind = chance.random()
    if kind < 0.65:
        params = mutate_tree(chance, given["params"]) if chance.random() < 0.6 else given["params"]
        changed = {**given, "params": params} if chance.random() < 0.6 else mutate_tree(chance, given)
        return json.dumps(changed).encode()
    body = json.dumps(given).encode()
    return mutate_bytes(chance, body) if kind < 0.85 else body


def must_answer(body: bytes) -> tuple[bool, Any]:
    """Whether a body must be answered, and to which id."""
    try:
        value = json.loads(body.decode(), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return True, None
    if not isinstance(value, dict):
        return True, None
    if "method" not in value and ("result" in value or "error" in value):
        return False, None
    identity = value.get("id")
    if "id" in value:
        usable = isinstance(identity, str | int | float) and not isinstance(identity, bool)
        return True, identity.replace("\ud800", "\ufffd") if usable and isinstance(
            identity, str
        ) else identity if usable else None
    return value.get("jsonrpc") != "2.0" or not isinstance(value.get("method"), str), None


def is_harmless(body: bytes) -> bool:
    """Not one that ends the server by rights."""
    return not any(json.dumps(name).encode() in body for name in FORBIDDEN)


def key(identity: Any) -> str:
    return json.dumps(identity)


def send_all(client: RawClient, count: int, chance: random.Random) -> tuple[Counter[str], int]:
    """Send `count` mutations; the replies that must come, by id, and how many bodies are JSON with an id."""
    expected: Counter[str] = Counter()
    parsed = 0
    for number in range(count):
        body = mutation(chance, 1_000_000 + number)
        if not is_harmless(body):
            continue
        must, identity = must_answer(body)
        expected[key(identity)] += must
        parsed += must and identity is not None
        data = frame(body)
        if chance.random() < 0.02:
            data = data.replace(
                b"Content-Length: ", chance.choice([b"content-length:", b"X-A: b\r\nCONTENT-LENGTH :  "])
            )
        client.write(data)
        if number % 200 == 0:
            client.call("lyma/status")
    return +expected, parsed


def wait_for_all(client: RawClient, start: int, expected: Counter[str]) -> None:
    """Until as many replies have come as must, or too long; what is wrong is then told by who called."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        client.call("lyma/status")
        found = Counter(key(m.get("id")) for m in client.messages[start:] if "method" not in m)
        if not expected - found:
            return


@pytest.mark.parametrize("count", [1000, 10_000])
def test_each_request_gets_one_reply(count: int, tmp_path: Any) -> None:
    chance = random.Random(SEED + count)
    with RawClient(env={"LYMA_HOME": str(tmp_path)}) as client:
        client.initialize(processId=os.getpid())
        client.call("lyma/status")
        before = len(client.messages)
        expected, parsed = send_all(client, count, chance)
        assert parsed >= 0.3 * count
        wait_for_all(client, before, expected)
        client.notify("exit")
        assert client.wait() == 1
        client._reader.join(10)
        replies = [found for found in client.messages[before:] if "method" not in found]
        own = {key(number) for number in range(1000)}
        found = Counter(key(reply["id"]) for reply in replies)
        different = {k: (expected[k], found[k]) for k in expected.keys() | found.keys() if expected[k] != found[k]}
        assert {k: v for k, v in different.items() if k not in own} == {}
        assert all(("result" in reply) != ("error" in reply) for reply in replies)
        internal = [reply for reply in replies if reply.get("error", {}).get("code") == -32603]
        assert internal == [], bytes(client.errors).decode()
        assert b"Traceback" not in client.errors
