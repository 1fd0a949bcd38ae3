"""Which means confine the commands of this machine: bubblewrap, else Landlock, else none, and then no command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation.bwrap import bwrap_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.isolation.confinement import Confinement
    from lyma_server.isolation.probe import Means

SCRATCH: Final = "/tmp"  # noqa: S108 - private in there


@frozen
class Enclosure:
    """`words` start a program confined; the program and its own words come after them.

    The first process of these words is the life of all that runs in it: when it is killed, all of it ends. File
    descriptors that it inherits reach the program. `environment` is what every command needs to see beside its own: the
    private folder for temporary files, which is made and removed with the enclosure. `notices` are for a person to read.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    notices: tuple[str, ...] = ()


def enclose(means: Means, confinement: Confinement) -> Enclosure:
    """The strongest enclosure that the machine has. It is not proven yet: `canary.prove_mask` must see that it holds.

    Raises MaskUnavailable where the machine has no means to confine.
    """
    if means.bwrap is not None:
        return Enclosure((str(means.bwrap), *bwrap_arguments(confinement)), {"TMPDIR": SCRATCH})
    raise MaskUnavailable(
        f"Lyma's home could not be hidden from commands, so none runs: {means.hindrance}.", reason="no_means"
    )
