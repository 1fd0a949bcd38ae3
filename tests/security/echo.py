"""A provider that tells everybody every key it was ever given, in every way in which providers say anything.

What it does is chosen by the first part of the path, so that one stub stands for many providers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.stub_provider import Reply, fail, html, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.security.canary import Canary
    from tests.stub_provider import Request

REFUSALS = ("body401", "header429", "body200", "html502", "redirect", "chunk")
"""Providers that never answer."""

TALKERS = ("broken", "said")
"""Providers that say what they know: one breaks off, one uses tools first and comes to an end."""

SILENT = "half"
"""Says half of it and then nothing more."""

OWN_COMMAND = "sleep 0.25"
"""What the model has run last, long enough to be seen."""

PIECE = 7
"""Characters a chunk: fewer than any redactor could go by."""


def pieces(text: str) -> tuple[str, ...]:
    return tuple(text[start : start + PIECE] for start in range(0, len(text), PIECE))


class Echo:
    """The replies, for a StubProvider."""

    def __init__(self, canaries: Sequence[Canary]) -> None:
        self.canaries = tuple(canaries)
        self.told = " ".join(text for canary in canaries for text in canary.spellings.values())
        self.error = {"message": f"Incorrect API key provided: {self.told}", "type": "server_error", "code": self.told}
        self._replies: dict[str, Callable[[Request], Reply]] = {
            "body401": lambda _: fail(401, {"error": self.error}),
            "header429": lambda _: fail(429, headers=self.headers),
            "body200": lambda _: Reply(body=json.dumps({"error": {**self.error, "type": "rate_limit"}})),
            "html502": lambda _: html(502, f"<html>{self.told}</html>"),
            "redirect": self._redirect,
            "chunk": lambda _: say(end="error", error=self.error),
            "broken": lambda _: say("Your keys: ", *pieces(self.told), end="error", error=self.error),
            "half": lambda _: say("Your keys: ", *pieces(self.canaries[0].value[:-4]), end="hang"),
            "said": self._say,
        }

    def __call__(self, request: Request) -> Reply:
        return self._replies[request.path.split("/")[1].partition("-")[0]](request)

    @property
    def headers(self) -> dict[str, str]:
        names = ("x-request-id", "request-id", "x-echo", "server", "set-cookie", "retry-after", "www-authenticate")
        accounts = dict.fromkeys(("openai-organization", "anthropic-organization-id"), self.canaries[0].value)
        return {**dict.fromkeys(names, self.told), **accounts}

    def listing(self, request: Request) -> Reply:
        """What it answers when it is asked for its models."""
        if request.path.startswith("/said-"):
            rows = [{"id": name, "object": "model"} for name in ("stub-model", *(c.value for c in self.canaries))]
            return Reply(body=json.dumps({"data": rows, "has_more": False}), headers=self.headers)
        return fail(401, {"error": self.error}, self.headers)

    def _redirect(self, request: Request) -> Reply:
        place = f"http://127.0.0.1:1{request.path}?key={self.canaries[0].value}#{self.told}"
        return Reply(status=307, body="", headers={"location": place, **self.headers})

    def _say(self, request: Request) -> Reply:
        if _has_results(request):
            return say("Done: ", *pieces(self.told), headers=self.headers)
        key = self.canaries[0].value
        calls = (
            ("search", json.dumps({"pattern": f"x|{key}"})),
            ("read_file", json.dumps({"path": "keys.txt"})),
            ("run_command", json.dumps({"command": f"env; echo {key}; {OWN_COMMAND}"})),
            ("write_file", json.dumps({"path": "stolen.txt", "text": "\n".join(c.value for c in self.canaries)})),
        )
        return Reply(text=("Let me see: ", *pieces(self.told)), thinking=pieces(self.told), calls=calls)


def _has_results(request: Request) -> bool:
    last = request.body["messages"][-1]
    content = last["content"] if isinstance(last["content"], list) else []
    return last["role"] == "tool" or any(block.get("type") == "tool_result" for block in content)
