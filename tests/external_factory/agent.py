"""An agent with a loop of its own, which speaks the protocol of descriptor 3 and shares nothing with Lyma."""

import base64
import json
import os
import struct


def send(**message):
    body = json.dumps(message).encode()
    os.write(3, struct.pack("!I", len(body)) + body)


def read(size):
    found = b""
    while len(found) < size:
        piece = os.read(3, size - len(found))
        if not piece:
            os._exit(1)
        found += piece
    return found


def receive():
    (length,) = struct.unpack("!I", read(4))
    message = json.loads(read(length))
    if message["type"] == "cancel":
        os._exit(0)
    return message


def ask(number, kind, **fields):
    send(type=kind, id=number, **fields)
    return receive()


send(type="hello", abi=1)
start = receive()
first = ask(1, "llm.step", append=[{"say": "Say a word."}])["text"]
second = ask(2, "llm.step", append=[{"say": f"You said {first}. Say another."}])["text"]
if start["spec"]["files"]["write"]:
    ask(3, "put_file", path="WORDS.md", base64=base64.b64encode(f"{first} {second}\n".encode()).decode(), more=False)
ask(4, "result", output={"text": f"{first} {second} {sorted(os.listdir('/in'))}"})
