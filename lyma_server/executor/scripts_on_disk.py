"""Shell scripts that lie on the disk: read before they run, as far as that is quick.

What a script does is judged again, exactly, at each of its execs. So this looks for what is certain: a variable that is not
set is taken to be something, and a script that is too long, or in another dialect, is left to the exec guard.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from lyma_server.executor.budget import Budget
from lyma_server.executor.marks import PLACEHOLDER, SOMETHING, UNKNOWN, is_known, taints
from lyma_server.executor.shell import Unreadable
from lyma_server.executor.tools import SHELLS
from lyma_server.executor.world import TooComplex

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

MAX_SIZE = 32 * 1024
MAX_NESTED = 3
STEPS = 2000
SECONDS, DISK_SECONDS = 0.4, 0.8
"""For one script, and for all scripts of one command."""

LENIENT = "unset variables are something"
"""The option of a World in which a script of the disk is followed."""


def follow_script(machine: Machine, world: World, place: str) -> None:
    """Follow the shell script at an absolute path, if one is there; what it would start is added to the machine's list."""
    nested = sum(name.startswith("/") for name in machine.stack)
    wanted = nested < MAX_NESTED and place not in machine.stack and machine.disk_left_s > 0
    text = _read(place) if wanted else None
    if text is None:
        return
    start = time.monotonic()
    before = machine.budget
    lenient = LENIENT in world.options
    world.options.add(LENIENT)
    machine.budget = Budget(STEPS, min(SECONDS, machine.disk_left_s))
    machine.stack.append(place)
    try:
        with suppress(Unreadable, TooComplex):
            machine.run_text(world, text)
    finally:
        machine.stack.pop()
        machine.budget = before
        machine.disk_left_s -= time.monotonic() - start
        if not lenient:
            world.options.discard(LENIENT)


def certain(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Words of a script of the disk: what is not known is something, and an unknown program nothing in particular."""
    words = tuple(word.replace(UNKNOWN, SOMETHING) for word in argv)
    if words and not is_known(words[0]) and not taints(words[0]):
        return (PLACEHOLDER, *words[1:])
    return words


def _read(place: str) -> str | None:
    """The text of a small regular file that is a shell script, None for any other."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = os.read(descriptor, MAX_SIZE + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(data) > MAX_SIZE or b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if _is_shell_script(text) else None


def _is_shell_script(text: str) -> bool:
    if not text.startswith("#!"):
        return True
    words = text[2:].split("\n", 1)[0].split()
    return any(os.path.basename(word) in SHELLS for word in words)  # noqa: PTH119 - a word of a text, not a path of ours
