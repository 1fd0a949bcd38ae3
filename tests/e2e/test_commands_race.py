"""A program that rewrites its words while they are judged may win against the guard. Confinement holds then."""

from __future__ import annotations

import pytest

from lyma_server.isolation import kernel, probe
from tests.command_sessions import commands_in, throwaway_home

pytestmark = [
    pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls"),
    pytest.mark.skipif(not probe.find_bwraps(), reason="bubblewrap is not here"),
]

RACE = """
import ctypes, os, sys, threading
tries, target = int(sys.argv[1]), sys.argv[2].encode()
libc = ctypes.CDLL(None)
word = ctypes.create_string_buffer(len(target) + 1)
words = [ctypes.create_string_buffer(each) for each in (b"rm", b"-rf")]
argv = (ctypes.c_void_p * 4)(*(ctypes.addressof(each) for each in (*words, word)), None)
def flip():
    while True:
        word.value = target
        word.value = b"harmless"
for _ in range(tries):
    child = os.fork()
    if child == 0:
        threading.Thread(target=flip, daemon=True).start()
        while True:
            libc.execve(b"/bin/rm", argv, None)
    os.waitpid(child, 0)
print("done")
"""
"""Each child tries until one of its execs is let through."""


async def race(home, tries: int) -> int:
    """How many of the races the guard noticed, before or after."""
    commands = commands_in(home)
    (home / "work/race.py").write_text(RACE)
    (home / "sentinel").touch()
    try:
        run = await commands.run(f"python3 race.py {tries} {home}", timeout_s=300)
        # the workspace is the command's own to lose; all else in the home is not
        assert run.output.text().endswith("done\n") or not (home / "work/race.py").exists()
    finally:
        await commands.close()
    assert (home / "sentinel").exists()
    assert (home / ".lyma/config.toml").read_text() == "key = 'canary'"
    return len(run.refusals)


async def test_what_lies_outside_the_workspace_survives():
    with throwaway_home() as home:
        assert await race(home, 20) > 0


@pytest.mark.full
async def test_a_thousand_races_are_survived():
    with throwaway_home() as home:
        assert await race(home, 1000) > 0
