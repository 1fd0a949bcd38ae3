"""Which means confine the commands of this machine: bubblewrap, else Landlock, else none, and then no command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation.bwrap import bwrap_arguments

if TYPE_CHECKING:
    from lyma_server.isolation.confinement import Confinement
    from lyma_server.isolation.probe import Means


def confined_words(means: Means, confinement: Confinement) -> list[str]:
    """The words that start a program confined; the program and its own words come after them.

    The first process of these words is the life of all that runs in it: when it is killed, all of it ends. They hold
    nothing yet for certain: `canary.prove_mask` must see that they do. Raises MaskUnavailable where the machine has no
    means to confine.
    """
    if means.bwrap is not None:
        return [str(means.bwrap), *bwrap_arguments(confinement)]
    raise MaskUnavailable(
        f"Lyma's home could not be hidden from commands, so none runs: {means.hindrance}.", reason="no_means"
    )
