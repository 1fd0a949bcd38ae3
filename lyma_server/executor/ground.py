"""Where the commands of a session run, and the words that start a program confined to it, once the mask is proven."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from lyma_server.errors import ConfigError, MaskUnavailable
from lyma_server.executor.exec_judge import Place
from lyma_server.isolation.bwrap import bwrap_arguments
from lyma_server.isolation.canary import prove_mask
from lyma_server.isolation.confinement import confine, contains
from lyma_server.isolation.probe import Means, probe
from lyma_server.isolation.surroundings import PACKAGE, survey

if TYPE_CHECKING:
    from lyma_server.isolation.confinement import Confinement, Write

PRIVATE: Final = (Path("/tmp"), Path("/run"))  # noqa: S108 - what is empty inside

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


async def confined_words(ground: Ground) -> list[str]:
    """The words to put before a program so that it runs confined.

    Raises MaskUnavailable, with the remedy, where Lyma's home cannot be kept from commands; ConfigError for a folder that
    may not be writable.
    """
    confinement = await asyncio.to_thread(_confinement, ground)
    means = await probe()
    if means.bwrap is None:
        raise _no_means(means)
    words = [str(means.bwrap), *bwrap_arguments(confinement)]
    await prove_mask(words, confinement)
    return [words[0], *AS_FIRST, *words[1:]]


def _confinement(ground: Ground) -> Confinement:
    around = survey(ground.workspace, ground.user_home, ground.lyma_homes)
    for folder in ground.writable:
        if not folder.is_absolute():
            raise ConfigError(f"{folder} is no absolute path; write it in full.", key="executor.writable")
    writable = tuple(folder.resolve() for folder in ground.writable)
    bounds = confine(around, write=ground.write, writable=writable, sockets=ground.sockets)
    return evolve(bounds, read_only=(*bounds.read_only, *_own_programs(bounds)))


def _own_programs(bounds: Confinement) -> list[Path]:
    """Our interpreter and package, where they lie in a folder that is empty inside."""
    needed = dict.fromkeys(Path(place).resolve() for place in (sys.prefix, sys.base_prefix, PACKAGE))
    return [
        place
        for place in needed
        if any(contains(folder, place) for folder in PRIVATE)
        and not any(contains(folder, place) for folder in bounds.writable)
    ]


def _no_means(means: Means) -> MaskUnavailable:
    return MaskUnavailable(
        f"Commands cannot be confined on this machine, so none runs: {means.hindrance}.", remedy=means.hindrance
    )
