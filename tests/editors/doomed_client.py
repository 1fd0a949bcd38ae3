"""A client that will be killed: it starts a server, asks, and lives on. "held": another process keeps its pipes open.

    python -m tests.editors.doomed_client held|alone PROMPT UNTIL COMMAND...

prints the ids of the server and of the process that holds the pipes (0 for none), once UNTIL has come from the server.
`$ROOT_URI` is the workspace, if it is set; with `$NAMELESS` the client does not say which process it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main(hold: str, prompt: str, until: str, *command: str) -> None:
    held_input, input_end = os.pipe()
    output_end, held_output = os.pipe()
    server = subprocess.Popen(command, stdin=held_input, stdout=held_output)
    os.close(held_input)
    os.close(held_output)
    holder = 0
    if hold == "held":
        pipes = (input_end, output_end)
        holding = subprocess.Popen(
            ["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=pipes
        )
        holder = holding.pid
    root = os.environ.get("ROOT_URI")
    own = None if os.environ.get("NAMELESS") else os.getpid()
    for message in (
        {"id": 1, "method": "initialize", "params": {"processId": own, "capabilities": {}, "rootUri": root}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "lyma/ask", "params": {"prompt": prompt}},
    ):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        os.write(input_end, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    seen = b""
    while until.encode() not in seen:
        chunk = os.read(output_end, 65536)
        if not chunk:
            sys.exit(f"the server said no more: {seen[-2000:]!r}")
        seen += chunk
    print(server.pid, holder, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
