"""A client that will be killed: it starts a server, asks, and lives on. Another process keeps its pipes open.

    python -m tests.editors.doomed_client PROMPT UNTIL COMMAND...

prints the ids of the server and of the process that holds the pipes, once UNTIL has come from the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listed in found for child in listed.read_text().split()]


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


def wait_until_gone(pids: list[int]) -> float:
    """Seconds until all are gone."""
    start = time.monotonic()
    while not all(is_gone(pid) for pid in pids):
        assert time.monotonic() - start < 10, f"still there: {[pid for pid in pids if not is_gone(pid)]}"
        time.sleep(0.01)
    return time.monotonic() - start


def main(prompt: str, until: str, *command: str) -> None:
    held_input, input_end = os.pipe()
    output_end, held_output = os.pipe()
    server = subprocess.Popen(command, stdin=held_input, stdout=held_output)
    os.close(held_input)
    holder = subprocess.Popen(
        ["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=(input_end, output_end)
    )
    for message in (
        {"id": 1, "method": "initialize", "params": {"processId": os.getpid(), "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "lyma/ask", "params": {"prompt": prompt}},
    ):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        os.write(input_end, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    seen = b""
    while until.encode() not in seen:
        seen += os.read(output_end, 65536)
    print(server.pid, holder.pid, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
