"""A program that starts the sandbox of commands and waits in the middle of that to be killed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lyma_server.executor import run
from lyma_server.isolation.launch import launch
from tests.command_sessions import commands_in
from tests.processes import descendants, wait_for
from tests.security.world import caught_in_its_start

if TYPE_CHECKING:
    from lyma_server.executor.ground import Ground


async def fence_that_takes_for_ever(_ground: Ground) -> NoReturn:
    """A bubblewrap of ours that has made its child and not yet let it go on."""
    reading, _ = os.pipe()
    info = os.open(os.devnull, os.O_WRONLY)
    words = caught_in_its_start(reading, info, "lyma_server.isolation.keeper")
    bubblewrap = launch(words, env={}, cwd="/", stdin_pipe=False, pass_fds=(reading, info))
    wait_for(lambda: descendants(bubblewrap.pid))
    print(*descendants(bubblewrap.pid), flush=True)
    await asyncio.Event().wait()
    raise AssertionError


if __name__ == "__main__":
    run.fence_for = fence_that_takes_for_ever
    asyncio.run(commands_in(Path(sys.argv[1])).run("true"))
