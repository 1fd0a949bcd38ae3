"""A server that speaks the protocol by itself and does as the prompt says, with the moments of what it sends written down.

    stamps N      N deltas, 200 ms apart, each with the time at which it was sent (milliseconds of the epoch)
    flood N       N deltas as fast as they can be written; `flood N fence`: of one of SHAPES
    quote TEXT    the text, with \\n and \\uXXXX as in JSON
    approval      ask for an approval and say what came back
    attack        an answer that means harm, with a line of a megabyte
    crash         end without a word

Run with `python tests/editors/stage_server.py`; it needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

HASH = "sha256:3f9a12cc04ee25a1f8a7a5a0a8a4a1a7a5b0c6d5e4f3a2b1c0d9e8f7a6b5c4d3"
USAGE = {"inputTokens": 812, "outputTokens": 9, "cachedTokens": 0, "costMicros": 2571, "estimated": False}
QUESTION = {
    "hash": HASH,
    "nonce": "Qm9va3NoZWxm",
    "title": "Approve the agent changelog-writer, " + HASH + "?",
    "summary": "changelog-writer: writes a changelog from the commits since the last tag",
    "text": "Agent changelog-writer\n\nMay read the workspace.\nMay write CHANGELOG.md.\nMay ask a model, for at most $0.50.\n",
    "manifest": {"format": 1},
    "path": [],
}

ALARM = "[Sign in](command:workbench.action.terminal.new) or [here](https://example.org/) \u202e<b>now</b>"

ATTACK = """<script>globalThis.hacked = 1</script>
<img src="https://example.org/beacon.png" onerror="globalThis.hacked = 2">
![picture](https://example.org/beacon2.png)

[run](command:workbench.action.terminal.new) [go](javascript:globalThis.hacked=3) [file](file:///etc/passwd)
[web](https://example.org/page) <https://user:secret@example.org/>

[data](data:text/html;base64,PHNjcmlwdD5oYWNrZWQ9NDwvc2NyaXB0Pg==) ![data](data:image/svg+xml,<svg/onload=hacked=5>)
[upper](JaVaScRiPt:hacked=6) [vs](vscode://lyma.lyma/run) <command:workbench.action.quit> [ref] [blob](blob:x) [rel](//example.org/x)
[entity](&#106;avascript:hacked=7) [\u202ecod.exe](https://example.org/page "\u202etitle\u2066")

[ref]: command:workbench.action.quit

<iframe src="https://example.org/frame"></iframe> <style>body { display: none }</style>

\x1b[31mred\x1b[0m \u202egnp.exe\u202c zero\u200bwidth over\rwritten \x00 \x07

"""

# What comes first, and what every delta says: text that a renderer would have to go through again with each delta.
SHAPES = {
    "words": ("", "word{0} *and* `code` more "),
    "fence": ("```python\n", "x[{0}] = f({0})  # a line\n"),
    "list": ("", "- item {0} with `code` and **more**\n"),
    "table": ("|a|b|\n|-|-|\n", "| {0} | `code` |\n"),
    "brackets": ("", "[*![_**"),
    "quotes": ("> " * 15, "a\n"),
    "wide": ("|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n", "|\n"),
    "line": ("```\n", "x" * 100),
}

writing = threading.Lock()
answers: dict[int, Any] = {}
answered = threading.Condition()


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with writing:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) or not length:
        if not line:
            os._exit(0)
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return found


def ask_client(identity: int, method: str, params: Any) -> Any:
    send({"id": identity, "method": method, "params": params})
    with answered:
        answered.wait_for(lambda: identity in answers)
        return answers[identity]


class Turn:
    def __init__(self, message: dict[str, Any]) -> None:
        self.identity = message["id"]
        self.prompt = message["params"]["prompt"]
        self.place = {"session": message["params"].get("session") or "s-1", "turn": f"t-{self.identity}"}
        self.seq = 0
        self.text = ""

    def emit(self, kind: str, **body: Any) -> None:
        self.seq += 1
        send({"method": "lyma/event", "params": {**self.place, "seq": self.seq, "type": kind, **body}})

    def say(self, text: str) -> None:
        self.text += text
        self.emit("item.delta", item="i-1", text=text)

    def play(self) -> None:
        self.emit("turn.started", prompt=self.prompt, sent=[])
        self.emit("item.started", item={"kind": "text", "id": "i-1", "text": ""})
        name, _, rest = self.prompt.partition(" ")
        getattr(self, name)(rest)
        self.emit("item.completed", item={"kind": "text", "id": "i-1", "text": self.text})
        self.emit("turn.completed", stopReason="end_turn", usage=USAGE)
        ending = {"stopReason": "end_turn", "text": self.text, "edits": [], "usage": USAGE, "route": []}
        send({"id": self.identity, "result": {**self.place, **ending}})

    def stamps(self, count: str) -> None:
        for _ in range(int(count)):
            time.sleep(0.2)
            self.say(f"at {time.time() * 1000:.0f}.\n\n")

    def flood(self, rest: str) -> None:
        count, _, shape = rest.partition(" ")
        first, each = SHAPES[shape or "words"]
        self.say(first)
        for number in range(int(count)):
            self.say(each.format(number) + (".\n\n" if shape == "" and number % 12 == 11 else ""))
        self.say("\n```\n\nThe flood is over." if shape in {"fence", "line"} else "\n\nThe flood is over.")

    def quote(self, text: str) -> None:
        self.say(json.loads(f'"{text}"'))

    def approval(self, _: str) -> None:
        answer = ask_client(1000 + self.identity, "lyma/requestApproval", QUESTION)
        self.say(f"answer: `{json.dumps(answer, sort_keys=True)}`")

    def attack(self, _: str) -> None:
        self.say(ATTACK)
        self.say("x" * (1 << 20))
        self.say(
            "\n\n```"
            + "y" * 20_000
            + "\n"
            + "z" * (1 << 17)
            + "\n```\n\n"
            + "`" * 20_000
            + "\n\n~~~\n"
            + "w" * (1 << 17)
        )
        self.say("\n~~~\n\n" + SHAPES["wide"][0] + "|\n" * 5000 + "\n" + "> " * 15 + "a\n" * 5000)
        self.say("\n\nThe attack is over.")

    def crash(self, _: str) -> None:
        os._exit(3)

    def __getattr__(self, _: str) -> Any:
        return lambda rest: self.say(f"said {rest}")


def result_of(method: str) -> Any:
    lyma = {"protocolVersion": 1, "events": {}, "approvals": {}}
    if method == "initialize":
        sync = {"openClose": True, "change": 1}
        capabilities = {"textDocumentSync": sync, "experimental": {"lyma": lyma}}
        return {"capabilities": capabilities, "serverInfo": {"name": "lyma", "version": "0.1.0"}}
    empty = {"agents": [], "runs": [], "notes": [], "diagnostics": []}
    approvals = {"approvals": [], "revoked": [], "pending": []}
    return {"lyma/subagent": empty, "lyma/approve": approvals, "lyma/sessions": {"sessions": [], "files": []}}.get(
        method
    )


def main() -> None:
    while True:
        message = receive()
        method = message.get("method")
        if method is None:
            with answered:
                answers[message["id"]] = message.get("result", message.get("error"))
                answered.notify_all()
        elif method == "exit":
            os._exit(0)
        elif method == "lyma/ask":
            threading.Thread(target=Turn(message).play, daemon=True).start()
        elif method == "lyma/models":
            send({"id": message["id"], "error": {"code": -31020, "message": ALARM, "data": {"kind": "provider_error"}}})
        elif "id" in message:
            send({"id": message["id"], "result": result_of(method)})


if __name__ == "__main__":
    main()
