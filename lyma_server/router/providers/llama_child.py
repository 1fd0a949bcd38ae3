"""The program of the embedded model's process: a real llama.cpp server on one Unix socket. Run as a script, never imported.

    python -I llama_child.py MODEL SOCKET ALIAS CONTEXT PACKAGES PARENT [careful]

It imports nothing of Lyma, prints `ready` when it listens, and ends with the process that started it: the kernel tells it
of its parent's death, and so does the end of its stdin. While the model loads, Python cannot run (xllamacpp holds its
lock), so until then the signal keeps its default action.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
CAREFUL = "careful"
"""For a very small model: the temperature that its makers advise, and an end to what it says in circles."""


def main(argv: list[str]) -> NoReturn:
    """Load the model, serve it until the parent is gone or says so."""
    model, socket, alias, context, packages, parent, *manner = argv
    end_with(int(parent))
    sys.path.insert(0, packages)
    server = serve(model, socket, alias, int(context), careful=manner == [CAREFUL])
    signal.signal(signal.SIGTERM, lambda *_: leave(socket))
    threading.Thread(target=wait_for_end_of_stdin, args=(socket,), daemon=True).start()
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    while server:
        signal.pause()
    leave(socket)


def end_with(parent: int) -> None:
    """Ask the kernel for SIGTERM at the death of the parent; if it has died already, end now."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def serve(model: str, socket: str, alias: str, context: int, *, careful: bool) -> object:
    """Start the server; it listens when this returns. A host name that ends in `.sock` is a Unix socket for llama.cpp."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {alias}
    parameters.hostnames = [socket]
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.cache_ram_mib = 0
    parameters.use_jinja = True
    parameters.warmup = False
    parameters.offline = True
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.server_tools = []
    if careful:
        parameters.n_predict = 768
        parameters.sampling.temp = 0.2
        parameters.sampling.top_p = 0.9
        parameters.sampling.penalty_repeat = 1.1
    return xllamacpp.Server(parameters)


def wait_for_end_of_stdin(socket: str) -> None:
    """The parent holds the other end of our stdin."""
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    leave(socket)


def leave(socket: str) -> NoReturn:
    """End at once. The folder of the socket was made for it alone; the parent may be gone and cannot remove it."""
    shutil.rmtree(Path(socket).parent, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
