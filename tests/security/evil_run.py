"""Runs an evil agent in the real sandbox, with a scripted parent, and looks at the host meanwhile. A program of its own.

It is run as root and as a plain user, who may go neither to our environment nor to this checkout; so it needs the
package, attrs and the system's Python, and no more. Its argument is JSON; on stdout it says what came of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path

from lyma_server.factory.bundle import make_bundle
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.sandbox import Launch, Sandbox
from lyma_server.isolation.cell_marks import FIRST_USER
from tests.security.weaker import weaker

HERE = Path(__file__).parent
LIMITS = {"cpu_s": 10, "memory_mb": 128, "scratch_mb": 8, "processes": 1, "wall_s": 60}
FILES = {"read": ["**"], "write": [], "max_files": 10, "max_read_bytes": 1 << 20, "max_write_bytes": 1 << 20}


def evil_bundle(limits):
    own = [{"name": "evil", "file": "tools/evil.py", "schema": "schema/evil.json"}]
    spec = {
        "name": "evil",
        "tools": {"allow": [], "python": own},
        "files": FILES,
        "budget": {**LIMITS, **limits},
        "output": {"schema": "", "max_bytes": 65536},
    }
    files = {"tools/evil.py": (HERE / "evil_inside.py").read_bytes(), "schema/evil.json": b'{"type":"object"}'}
    return make_bundle({"format": 1, "kind": "data", "spec": spec, "delegates": []}, files)


class Host:
    """What an evil agent may reach for, and what it has reached."""

    def __init__(self, stack: ExitStack) -> None:
        self.base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="evil-")))
        self.base.chmod(0o755)
        self.staged = self.base / "in"
        self.staged.mkdir(mode=0o755)
        (self.staged / "file").write_text("staged")
        os.chmod(self.staged, 0o777)
        os.chmod(self.staged / "file", 0o666)  # only the mount keeps it from being written
        self.secret = self.base / "secret"
        self.secret.write_text("the secret of the host")
        self.secret.chmod(0o644)
        self.noted: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._listeners: dict[str, tuple] = {}
        self.victim = self._victim(stack)
        self.facts = {
            "tcp": self._listen(stack, "tcp", socket.AF_INET, ("127.0.0.1", 0)),
            "udp": self._listen(stack, "dns", socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM),
            "unix": str(self.base / "socket"),
            "abstract": f"evil-{time.monotonic_ns()}",
            "host": "/host",
            "secret": str(self.secret),
            "canary": os.environ.get("EVIL_CANARY", "?"),
            "victim": self.victim.pid,
            "marker": str(time.monotonic_ns()),
            "bomb": 40,
            "bytes": 64 << 20,
        }
        with suppress(OSError):
            self.facts["tcp6"] = self._listen(stack, "tcp6", socket.AF_INET6, ("::1", 0))
        self._listen(stack, "unix", socket.AF_UNIX, self.facts["unix"])
        os.chmod(self.facts["unix"], 0o777)
        self._listen(stack, "abstract", socket.AF_UNIX, "\0" + self.facts["abstract"])

    def _victim(self, stack):
        """A process of the same user as the evil agent's."""
        user = FIRST_USER
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if os.geteuid() == 0 else []
        victim = subprocess.Popen([*drop, "sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        return victim

    def _listen(self, stack, name, family, address, kind=socket.SOCK_STREAM):
        end = socket.socket(family, kind)
        stack.callback(end.close)
        end.bind(address)
        if kind == socket.SOCK_STREAM:
            end.listen()
        self._listeners[name] = (family, kind, end.getsockname())
        threading.Thread(target=self._note, args=(end, name), daemon=True).start()
        return end.getsockname()

    def _note(self, end, name):
        with suppress(OSError):
            while True:
                if end.type == socket.SOCK_STREAM:
                    with end.accept()[0] as came:
                        came.settimeout(1)
                        said = came.recv(4)
                else:
                    said = end.recv(4)
                self.noted.put((name, said))

    def arrived(self):
        """Where something arrived that the evil agent sent; what we send ourselves comes after all of it."""
        for family, kind, address in self._listeners.values():
            with socket.socket(family, kind) as end:
                end.connect(address)
                end.send(b"mine")
        waited, found = set(self._listeners), set()
        while waited:
            name, said = self.noted.get(timeout=10)
            waited -= {name} if said == b"mine" else set()
            found |= {name} if said != b"mine" else set()
        return sorted(found)

    def left(self):
        """The processes that bear the mark of this run."""
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if place.read_bytes().split(b"\0")[:2] == [b"sleep", self.facts["marker"].encode()]:
                    found.append(int(place.parent.name))
        return found


async def attack(order):
    with ExitStack() as stack:
        host = Host(stack)
        stack.enter_context(weaker(order.get("weak", [])))
        sandbox = Sandbox()
        if not order.get("weak"):
            await sandbox.prove()
        else:
            sandbox._bwrap = Path(order["bwrap"])
        before = descriptors()
        inside = await sandbox.start(Launch(bundle=evil_bundle(order.get("limits", {})), staged=host.staged))
        told = {**host.facts, **order.get("facts", {})}
        said, fault = await talk(inside, {"deeds": order["deeds"], **told}, order.get("wall_s", 30))
        start = time.monotonic()
        ended = await inside.stop(order.get("grace_s", 5))
        stopped_s = time.monotonic() - start
        left = host.left()
        for pid in left:
            os.kill(pid, 9)
        return {
            "said": said,
            "fault": fault,
            "status": ended.status,
            "reason": ended.reason,
            "output": ended.output[-2000:],
            "stopped_s": stopped_s,
            "arrived": host.arrived(),
            "victim": host.victim.poll() is None,
            "files": sorted(path.name for path in host.base.rglob("*")),
            "staged": (host.staged / "file").read_text(),
            "left": len(left),
            "descriptors": sorted(descriptors() - before),
        }


def descriptors():
    """Ours, without those of the event loop, which it keeps."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return found


async def talk(inside, arguments, wall_s):
    """The part of the parent: one call of the evil tool, then the end. What the tool said, and what was odd."""
    said, fault = None, None
    try:
        async with asyncio.timeout(wall_s):
            said = await converse(inside.channel, arguments)
    except ChannelFault as error:
        fault = str(error)
    except TimeoutError:
        fault = "time is up"
    return said, fault


async def converse(channel, arguments):
    if await channel.receive() is None:
        return None
    spec = evil_bundle({})
    await channel.send({"type": "start", "kind": "data", "spec": spec.facts["spec"], "input": None})
    asked = await channel.receive()
    call = {"id": "1", "name": "evil", "arguments": arguments}
    await channel.send({"type": "reply", "id": asked["id"], "text": "", "tool_calls": [call], "left": {}})
    answer = await channel.receive()
    if answer is None:
        return None
    await channel.send({"type": "reply", "id": answer["id"], "text": "done", "tool_calls": [], "left": {}})
    result = await channel.receive()
    if result is not None:
        await channel.send({"type": "reply", "id": result["id"], "accepted": True})
        await channel.receive()
    text = answer["append"][0]["text"]
    return json.loads(text) if not answer["append"][0]["is_error"] else text


def outcome(order):
    try:
        return asyncio.run(attack(order))
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps([outcome(order) for order in json.loads(sys.argv[1])]))
