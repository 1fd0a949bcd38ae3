"""Where the commands of a session run, and the words that start a program confined to it, once the mask is proven."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from lyma_server.errors import ConfigError
from lyma_server.executor.exec_judge import Place
from lyma_server.isolation.canary import prove_mask
from lyma_server.isolation.confinement import confine
from lyma_server.isolation.probe import probe
from lyma_server.isolation.surroundings import survey
from lyma_server.isolation.tier import enclose

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.isolation.confinement import Confinement, Write
    from lyma_server.isolation.tier import Fence

AS_FIRST: Final = ("--as-pid-1",)
"""What follows is the first process of its namespace, which nobody inside can signal."""


@frozen(kw_only=True)
class Ground:
    """`lyma_homes` are all folders that Lyma may take for its home, the one in use first. All are absolute paths."""

    workspace: Path
    user_home: Path
    lyma_homes: tuple[Path, ...]
    write: Write = "workspace"
    writable: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()

    @property
    def place(self) -> Place:
        """What verdicts rest on."""
        return Place(str(self.user_home), str(self.workspace), str(self.lyma_homes[0]))


async def fence_for(ground: Ground) -> Fence:
    """The words to put before a program so that it runs confined, and what belongs to them.

    Raises MaskUnavailable, with the remedy, where Lyma's home cannot be kept from commands; ConfigError for a folder that
    may not be writable.
    """
    probing = asyncio.ensure_future(probe())
    try:
        confinement = await asyncio.to_thread(_confinement, ground)
        means = await probing
    finally:
        probing.cancel()
    fence = enclose(means, confinement)
    await prove_mask(fence.words, confinement)
    if means.tier != "bwrap":
        return fence
    return evolve(fence, words=(fence.words[0], *AS_FIRST, *fence.words[1:]))


def _confinement(ground: Ground) -> Confinement:
    around = survey(ground.workspace, ground.user_home, ground.lyma_homes)
    for folder in ground.writable:
        if not folder.is_absolute():
            raise ConfigError(f"{folder} is no absolute path; write it in full.", key="executor.writable")
    writable = tuple(folder.resolve() for folder in ground.writable)
    return confine(around, write=ground.write, writable=writable, sockets=ground.sockets)
