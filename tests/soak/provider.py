"""Providers that do to a request what the plan in its prompt says: `plan:17:limit,command,say`.

The words are taken one a model call, whoever is asked; after the last one everything is said. What a plan asks of a tool
depends on its number, so that a seed decides all of it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from tests.stub_provider import Reply, call_tool, cut, fail, hang, never_answer, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.stub_provider import Request

PLAN: Final = re.compile(rb"plan:(\d+):([a-z_,]+)")
COMMANDS: Final = (
    "echo one; echo two >&2; exit 3",
    "seq 2000",
    "sleep 0.3; echo late",
    "sleep 700.5 & echo left",
    "mktemp; cat notes/*.txt | wc -c",
    "sleep 700.5",
)
"""The last is ended by its timeout; the one that leaves something ends with its session."""

FAULTS: Final[dict[str, Callable[[], Reply]]] = {
    "limit": lambda: fail(429, headers={"retry-after": "0.1"}),
    "broken": lambda: fail(500),
    "down": lambda: fail(503, headers={"retry-after": "0.1"}),
    "cut": cut,
    "cut_after": lambda: cut("Half a "),
    "silent": never_answer,
    "hang": lambda: hang("And then "),
    "garbage": lambda: Reply(body="{]", headers={"content-type": "application/json"}),
}
WORDS: Final = ("say", "long", "command", "edit", "read", "search")


class Plans:
    """Answers by plan. `agent` is the hash of an agent that may be run."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self._asked: defaultdict[int, int] = defaultdict(int)
        self._lock = threading.Lock()
        self.faults = 0
        self.latest: deque[str] = deque(maxlen=60)
        """What was answered last, and when."""

    def answer(self, request: Request) -> Reply:
        """The latest plan counts: those before it are the conversation's history."""
        number, words = max((int(found[1]), found[2].decode().split(",")) for found in PLAN.finditer(request.raw))
        with self._lock:
            at = self._asked[number]
            self._asked[number] += 1
        word = words[at] if at < len(words) else "say"
        self.latest.append(f"{time.monotonic():.1f} plan {number}: {word}")
        if word in FAULTS:
            self.faults += 1
            return FAULTS[word]()
        return self._sound(word, number)

    def _sound(self, word: str, number: int) -> Reply:
        if word == "long":
            return say(*(f"word {n} " for n in range(30)), pause_s=0.02)
        tools = {
            "command": ("run_command", {"command": COMMANDS[number % len(COMMANDS)], "timeout_s": 1}),
            "edit": ("write_file", {"path": f"notes/{number % 5}.txt", "text": f"note {number}\n"}),
            "read": ("read_file", {"path": f"notes/{number % 7}.txt"}),
            "search": ("search", {"pattern": "note"}),
            "agent": ("run_compiled_agent", {"hash": self.agent, "input": f"plan:{number}:say"}),
        }
        return call_tool(*tools[word]) if word in tools else say("All ", "is ", f"said {json.dumps(number)}.")
