"""A program run under the exec guard, for tests: a child installs the filter, hands over the listener and becomes it."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import lyma_server
from lyma_server.isolation.guard import ExecRequest, Guard, Refusal

CHILD = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from lyma_server.isolation import seccomp
channel = socket.socket(fileno=int(sys.argv[2]))
listener = seccomp.install()
socket.send_fds(channel, [b"x"], [listener])
os.close(listener)
channel.close()
os.execvp(sys.argv[3], sys.argv[3:])
"""
PACKAGE = Path(lyma_server.__file__).parent
PYTHON = "/usr/bin/python3"
"""That of the system: ours may lie where a plain user may not go, as may this checkout, so the parts needed are copied."""

PARTS = ("__init__.py", "isolation/__init__.py", "isolation/kernel.py", "isolation/seccomp.py")


@contextmanager
def readable_by_all():
    """A copy of what the child imports."""
    with tempfile.TemporaryDirectory(prefix="lyma-guarded-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        for part in PARTS:
            copy = Path(folder, PACKAGE.name, part)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / part, copy)
        yield folder


class Guarded:
    """`requests` are all that was judged, `refusals` what was refused."""

    def __init__(self, judge) -> None:
        self.requests: list[ExecRequest] = []
        self._last: tuple[str, ...] = ()
        self.refusals: list[tuple[tuple[str, ...], str]] = []
        self._judge = judge

    def run(self, argv, *, prefix=(), timeout=30, **options) -> subprocess.CompletedProcess:
        ours, theirs = socket.socketpair()
        with ours, theirs, readable_by_all() as folder:
            words = [*prefix, PYTHON, "-I", "-B", "-c", CHILD, folder, str(theirs.fileno()), *argv]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True}
            with subprocess.Popen(words, pass_fds=[theirs.fileno()], **pipes, **options) as process:
                theirs.close()
                _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
                ended = threading.Event()
                server = threading.Thread(target=self._serve, args=(descriptors[0], ended))
                server.start()
                try:
                    said, _ = process.communicate(timeout=timeout)
                finally:
                    process.kill()
                    ended.set()
                    server.join()
        return subprocess.CompletedProcess(argv, process.returncode, said)

    def _serve(self, listener: int, ended: threading.Event) -> None:
        guard = Guard(listener, self._decide, lambda _, refusal: self.refusals.append((self._last, refusal.reason)))
        while not ended.is_set():
            due = guard.due_in()
            ready, _, _ = select.select([listener], [], [], 0.05 if due is None else min(due, 0.05))
            if ready:
                guard.serve()
            guard.look_again()
        guard.close()

    def _decide(self, request: ExecRequest) -> Refusal | None:
        self.requests.append(request)
        self._last = request.argv
        reason = self._judge(request)
        return None if reason is None else Refusal("test", request.path, reason, "")


def identity(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino
