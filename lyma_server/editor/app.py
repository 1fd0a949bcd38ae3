"""The server that an editor starts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lyma_server.compose import Core
    from lyma_server.editor.engine import Build
    from lyma_server.editor.rpc.stdio import Stdio

USAGE: Final = """usage: lyma-server [--stdio] [--version]

Speaks JSON-RPC to an editor on stdin and stdout. In a terminal, use `lyma`.
"""


def serve(argv: Sequence[str]) -> int:
    """Serve the editor until it leaves and return the exit code."""
    unknown = [argument for argument in argv if argument not in ("--stdio", "--version", "-V", "--help", "-h")]
    if unknown:
        sys.stderr.write(f"lyma-server: {unknown[0]} is not an option.\n{USAGE}")
        return 2
    if "--help" in argv or "-h" in argv:
        sys.stdout.write(USAGE)
        return 0
    if "--version" in argv or "-V" in argv:
        from lyma_server import __version__

        sys.stdout.write(f"lyma-server {__version__}\n")
        return 0
    return serve_with(build_default_core)


def serve_with(build: Build) -> int:
    """The same with a core of one's own. Takes stdin and stdout away first thing, before anything else can print."""
    from lyma_server.editor.rpc.stdio import claim_stdio

    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(USAGE)
    try:
        stdio = claim_stdio()
    except OSError:
        sys.stderr.write("lyma-server: stdin or stdout is closed; an editor must start it with both as pipes.\n")
        return 1
    return _run(build, stdio)


def build_default_core() -> Core:
    """The core that the configuration and the environment describe."""
    import os

    from lyma_server.compose import build_core
    from lyma_server.secret import keep_memory_private

    keep_memory_private()
    return build_core(os.environ)


def _run(build: Build, stdio: Stdio) -> NoReturn:
    from lyma_server.garbage import collect_rarely

    collect_rarely()
    import asyncio

    from lyma_server.editor.logs import log_to_stderr
    from lyma_server.editor.rpc.connection import Connection
    from lyma_server.editor.server import LymaServer

    server = LymaServer(build)
    log_to_stderr(server.redact)

    async def run() -> NoReturn:
        _leave(await Connection(server, stdio).serve())

    asyncio.run(run())


def _leave(code: int) -> NoReturn:
    """End at once. Everything is closed by now; a thread that still imports something or waits is waited for by nobody."""
    import logging
    import os

    logging.shutdown()
    os._exit(code)
