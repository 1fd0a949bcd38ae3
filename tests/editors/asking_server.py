"""A server that asks for an approval and tells what the editor answered. Run with `python -m tests.editors.asking_server`.

An ask whose prompt is `approve`, `withdraw`, `twice` or `both` leads to questions; its answer is what came back, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

HASH = "sha256:3f9a12cc04ee25a1f8a7a5a0a8a4a1a7a5b0c6d5e4f3a2b1c0d9e8f7a6b5c4d3"
LINES = [f"  | line {number} of the manifest" for number in range(40)]
SERVER: dict[str, Any] = {
    "capabilities": {"textDocumentSync": 1, "experimental": {"lyma": {"protocolVersion": 1}}},
    "serverInfo": {"name": "asking"},
}
USAGE = {"inputTokens": 1, "outputTokens": 2, "cachedTokens": 0, "estimated": False}


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    if not length:
        sys.exit(0)
    return json.loads(sys.stdin.buffer.read(length))


class Turn:
    _numbers = itertools.count(1000)

    def __init__(self, name: str = "t-1") -> None:
        self.name, self.seq = name, 0

    def tell(self, kind: str, **fields: Any) -> None:
        self.seq += 1
        place = {"session": "s-1", "turn": self.name, "seq": self.seq}
        send({"method": "lyma/event", "params": {**place, "type": kind, **fields}})

    def ask(self, nonce: str, path: list[str]) -> int:
        number = next(self._numbers)
        title = f"Approve the agent tidy, {HASH}?"
        self.tell("approval.requested", hash=HASH, title=title, path=path)
        params = {"hash": HASH, "nonce": nonce, "title": title, "summary": "tidy: tidies", "manifest": {"format": 1}}
        text = "\n".join(["tidy: tidies", HASH, "  + reads src/**", *LINES])
        send({"id": number, "method": "lyma/requestApproval", "params": {**params, "text": text, "path": path}})
        return number

    def answer(self, number: int) -> Any:
        while (message := receive()).get("id") != number or "method" in message:
            pass
        return message.get("result", message.get("error"))

    def run(self, prompt: str) -> str:
        number = self.ask("nonce-1", ["root-run", "tidy"])
        if prompt == "both":
            other = Turn("t-2").ask("nonce-2", [])
            self.tell("approval.resolved", hash=HASH, state="withdrawn")
            return json.dumps([self.answer(number), self.answer(other)], sort_keys=True)
        if prompt == "withdraw":
            self.tell("approval.resolved", hash=HASH, state="withdrawn")
        answers = [self.answer(number)]
        if prompt == "twice":
            answers.append(self.answer(self.ask("nonce-2", [])))
        return json.dumps(answers, sort_keys=True)


def ask(params: dict[str, Any]) -> dict[str, Any]:
    turn = Turn()
    turn.tell("turn.started", prompt=params["prompt"], sent=[])
    text = turn.run(params["prompt"])
    turn.tell("item.started", item={"kind": "text", "id": "i-1", "text": ""})
    turn.tell("item.delta", item="i-1", text=text)
    turn.tell("item.completed", item={"kind": "text", "id": "i-1", "text": text})
    turn.tell("turn.completed", stopReason="end_turn", usage=USAGE)
    done = {"stopReason": "end_turn", "text": text, "edits": [], "usage": USAGE, "route": []}
    return {"session": "s-1", "turn": "t-1", **done}


def main() -> None:
    while (message := receive()).get("method") != "exit":
        if "method" in message and "id" in message:
            answers = {"initialize": lambda _: SERVER, "lyma/ask": ask}
            result = answers.get(message["method"], lambda _: None)(message.get("params"))
            send({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
