"""The life of an agent: it asks its model, carries out the calls, and so on until there is a result that is accepted."""

from __future__ import annotations

import binascii
import json
import re

from lyma_server.factory.runner import wire
from lyma_server.factory.runner.files import Files
from lyma_server.factory.runner.tools import Tools, fitted

TYPE_CHECKING = False  # to load typing would take longer than all else here
if TYPE_CHECKING:
    from typing import Any, Final

DELEGATE: Final = "agent.run"
PIECE: Final = 512 << 10
"""Bytes of a file in one message."""

FENCED: Final = re.compile(r"\A\s*```[^\n]*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def main() -> None:
    start = wire.receive()
    Life(start["spec"]).live()


class Life:
    """One agent, by the `spec` of its manifest."""

    def __init__(self, spec: dict[str, Any], requests: wire.Requests | None = None) -> None:
        self._requests = requests or wire.Requests()
        self._files = Files(spec["files"]["write"])
        self._tools = Tools(self._files, spec["tools"]["python"])
        self._as_text = not spec["output"]["schema"]

    def live(self) -> None:
        """Until the parent has taken a result. It sees to it that this is not for ever."""
        append: list[dict[str, Any]] = []
        while True:
            reply = self._requests.ask("llm.step", append=append)
            append = self._carry_out(reply["tool_calls"])
            if not append and self._hand_in(reply["text"]):
                return

    def _carry_out(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A result for each call, in order. Other agents run side by side, after all else."""
        results = {call["id"]: self._tools.run(call["name"], call["arguments"]) for call in calls if call["name"] != DELEGATE}  # fmt: skip
        running = {
            call["id"]: self._requests.begin(DELEGATE, **call["arguments"])
            for call in calls
            if call["name"] == DELEGATE
        }
        for call, number in running.items():
            results[call] = self._outcome(self._requests.answer(number))
        return [self._result(call["id"], *results[call["id"]], len(calls)) for call in calls]

    @staticmethod
    def _result(call: str, text: str, is_error: bool, calls: int) -> dict[str, Any]:
        return {"call": call, "text": fitted(text, calls), "is_error": is_error}

    @staticmethod
    def _outcome(reply: dict[str, Any]) -> tuple[str, bool]:
        shown = {name: reply[name] for name in ("status", "output", "error")}
        return json.dumps(shown, ensure_ascii=False), reply["status"] != "ok"

    def _hand_in(self, text: str) -> bool:
        """Send the changed files and the result; whether it was accepted."""
        for path, content in self._files.changed.items():
            self._put(path, content.encode())
        output = {"text": text} if self._as_text else parse(text)
        return bool(self._requests.ask("result", output=output)["accepted"])

    def _put(self, path: str, content: bytes) -> None:
        for start in range(0, max(1, len(content)), PIECE):
            piece = binascii.b2a_base64(content[start : start + PIECE], newline=False).decode()
            self._requests.ask("put_file", path=path, base64=piece, more=start + PIECE < len(content))


def parse(text: str) -> Any:
    """The JSON that an answer is, with or without a fence around it; the text itself where it is none."""
    fenced = FENCED.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text
