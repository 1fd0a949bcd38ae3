"""A factory that shares nothing with Lyma but the two protocols: JSON-RPC by lines, and frames on descriptor 3.

It drafts an agent that counts words: by itself, or with the purpose that a model words for it. It compiles by writing the
code of the tool. A task may ask it to misbehave, for those who must hold it.
"""

import base64
import json
import os
import struct
import sys
import time

SPEC = """\
lyma_agent = 1
name = "word-counter"
purpose = "{purpose}"
instructions = "Call the tool count with the text of the input, and answer with what it says."
[model]
class = "fast"
max_output_tokens = 512
[tools]
python = [{{ name = "count", file = "tools/count.py", schema = "schema/count.json" }}]
[files]
max_files = 1
max_read_bytes = 1
max_write_bytes = 1
[budget]
max_turns = 4
max_tool_calls = 4
max_tokens = {tokens}
max_cost_micros = 1000
wall_s = 60
cpu_s = 10
memory_mb = 128
scratch_mb = 1
processes = 1
[output]
max_bytes = 1024
"""
CODE = b"def run(args):\n    return len(args['text'].split())\n"
SCHEMA = b'{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}'


class Model:
    """Asks on descriptor 3."""

    def __init__(self):
        self.asked = 0

    def ask(self, text):
        self.asked += 1
        body = json.dumps({"type": "llm.step", "id": self.asked, "append": [{"say": text}]}).encode()
        os.write(3, struct.pack("!I", len(body)) + body)
        (length,) = struct.unpack("!I", self.read(4))
        reply = json.loads(self.read(length))
        if reply["type"] == "cancel":
            sys.exit(0)
        return reply["text"]

    def read(self, size):
        found = b""
        while len(found) < size:
            piece = os.read(3, size - len(found))
            if not piece:
                sys.exit(1)
            found += piece
        return found


def draft(params, model):
    task = params["task"]
    if task.startswith("ask "):
        purpose = model.ask("Name the purpose of an agent for this task, in one line: " + task[4:]).strip()
    else:
        purpose = task
    return {"spec_toml": SPEC.format(purpose=purpose, tokens=min(20_000, params["ceiling"]["max_tokens"]))}


def compiled(params, _model):
    purpose = next(line for line in params["spec_toml"].splitlines() if line.startswith("purpose"))
    files = [file("tools/count.py", CODE), file("schema/count.json", SCHEMA)]
    if "secretly more" in purpose:
        files.append(file("tools/more.py", b"import os\n"))
    if "bad code" in purpose:
        files[0] = file("tools/count.py", b"import os, sqlalchemy\n")
    if "no base64" in purpose:
        files[0]["base64"] = "?"
    if "of its own" in purpose:
        with open("/tree/agent.py", "rb") as own:
            return {"files": [file("agent.py", own.read())], "program": ["python3", "-I", "agent.py"]}
    return {"files": files}


def file(path, content):
    return {"path": path, "base64": base64.b64encode(content).decode()}


def misbehave(task):
    if task == "die":
        os._exit(9)
    if task == "sleep":
        time.sleep(600)
    if task == "rubbish":
        print("this is no JSON", flush=True)
        time.sleep(600)
    if task == "flood":
        while True:
            print("x" * 100_000, flush=True)
    if task == "write":
        with open("/tree/main.py", "ab") as own:
            own.write(b"#")


def main():
    model = Model()
    methods = {"draft": draft, "compile": compiled}
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "cancel":
            return
        if request["method"] == "initialize":
            answer = {"result": {"protocol": 1, "name": "word-counters"}}
        else:
            say({"method": "progress", "params": {"text": "working on " + request["method"]}})
            misbehave(request["params"].get("task"))
            try:
                answer = {"result": methods[request["method"]](request["params"], model)}
            except Exception as error:
                answer = {"error": {"code": -32000, "message": str(error)}}
        say({"id": request["id"], **answer})


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
