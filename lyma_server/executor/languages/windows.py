"""PowerShell and cmd, as far as their commands are plain words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^\s;|&]+)|([;|&\n]+)")
_REMOVERS = frozenset({"remove-item", "ri", "rd", "rmdir", "del", "erase", "rm"})
_HOMES = re.compile(
    r"(?i)\$env:(?:USERPROFILE|HOMEPATH|HOME)|\$\{?HOME\}?|%(?:USERPROFILE|HOMEPATH)%|(?<![\w~])~(?![\w~])"
)
_PARAMETERS = re.compile(r"(?i)^-(?:path|literalpath)$")


def read_windows(machine: Machine, world: World, text: str) -> None:
    """Follow each command of `text`."""
    home = world.home()[0]
    command: list[str] = []
    for double, single, plain, separator in _WORD.findall(_HOMES.sub(lambda _: home, text)):
        if separator:
            _run(machine, world, command)
            command = []
        else:
            command.append(double or single or plain)
    _run(machine, world, command)


def _run(machine: Machine, world: World, words: list[str]) -> None:
    from lyma_server.executor.external import start

    if not words:
        return
    name = words[0].lower().removesuffix(".exe")
    if name in _REMOVERS:
        targets = [
            _place(word) for word in words[1:] if not word.startswith("-") and not re.fullmatch(r"/[a-zA-Z]", word)
        ]
        start(machine, world, ("rm", "-rf", "--", *targets))
    elif name == "format" and len(words) > 1:
        start(machine, world, ("format", *words[1:]))
    elif not _PARAMETERS.match(name):
        start(machine, world, (name, *words[1:]))


def _place(word: str) -> str:
    """A drive as the root, backslashes as slashes."""
    path = re.sub(r"^[A-Za-z]:", "", word).replace("\\", "/")
    path = path or "/"
    return re.sub(r"/\*(\.\*)?$", "", path) or "/" if re.match(r"^[A-Za-z]:", word) else path
