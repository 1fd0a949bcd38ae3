"""Where the commands of a session run, and the words that start a program confined to it, once the mask is proven."""

from __future__ import annotations

import asyncio
import os
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
    from collections.abc import Iterator
    from pathlib import Path

    from lyma_server.isolation.confinement import Confinement, Write
    from lyma_server.isolation.tier import Fence

AS_FIRST: Final = ("--as-pid-1",)
"""What follows is the first process of its namespace, which nobody inside can signal."""

EVERYWHERE: Final = (
    'executor.write is "everywhere": commands may change all that you may change, except what no setting opens.'
)
SOCKETS: Final = "executor.sockets lets commands reach {names}; whoever may speak there may approve for you."


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
    as_first = AS_FIRST if means.tier == "bwrap" else ()
    return evolve(
        fence,
        words=(fence.words[0], *as_first, *fence.words[1:]),
        notices=(*fence.notices, *_widened(confinement)),
    )


def _widened(confinement: Confinement) -> Iterator[str]:
    """What the user's settings gave away, for the person to know."""
    if confinement.write == "everywhere":
        yield EVERYWHERE
    if confinement.sockets:
        yield SOCKETS.format(names=", ".join(map(str, confinement.sockets)))


def _confinement(ground: Ground) -> Confinement:
    around = survey(ground.workspace, ground.user_home, ground.lyma_homes)
    for name, paths in (("writable", ground.writable), ("sockets", ground.sockets)):
        for path in paths:
            if not path.is_absolute():
                raise ConfigError(
                    f"{path} in executor.{name} is no absolute path; write it in full.", key=f"executor.{name}"
                )
    writable = tuple(folder.resolve() for folder in ground.writable)
    bounds = confine(around, write=ground.write, writable=writable, sockets=ground.sockets)
    for folder in writable:
        if not os.access(folder, os.F_OK):
            raise ConfigError(
                f"{folder} in executor.writable does not exist; make it, or take it out.", key="executor.writable"
            )
    return bounds
