"""A client written from protocol.md alone: standard library only, and nothing of Lyma's imported.

python minimal_client.py "What does this project do?" lyma-server
"""

import json
import subprocess
from pathlib import Path


class Client:
    def __init__(self, command, folder, approve=None):
        """`approve` shows a person all of what it is given and returns yes, no, or None where they did not answer."""
        self.approve = approve
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last_id = 0
        self.events = []
        lyma = {"protocolVersion": 1, "events": {}, **({"approvals": {}} if approve else {})}
        folders = [{"uri": Path(folder).resolve().as_uri(), "name": "work"}]
        capabilities = {"experimental": {"lyma": lyma}}
        params = {"processId": None, "rootUri": None, "workspaceFolders": folders, "capabilities": capabilities}
        answer = self.request("initialize", params)
        self.lyma = answer["result"]["capabilities"]["experimental"]["lyma"]
        self.send({"method": "initialized", "params": {}})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while line := self.server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise EOFError("the server has left")
        return json.loads(self.server.stdout.read(length))

    def request(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("method") == "lyma/event":
                self.events.append(message["params"])
            elif message.get("method") == "lyma/requestApproval" and self.approve:
                asked = message["params"]
                answer = {"hash": asked["hash"], "nonce": asked["nonce"], "approved": self.approve(asked)}
                self.send({"id": message["id"], "result": None if answer["approved"] is None else answer})
            elif "method" in message and "id" in message:  # a request to us: we offer nothing
                self.send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})
            elif message.get("id") == self.last_id and "method" not in message:
                return message

    def ask(self, prompt, **more):
        return self.request("lyma/ask", {"prompt": prompt, **more})

    def close(self):
        self.request("shutdown", None)
        self.send({"method": "exit"})
        return self.server.wait(10)
