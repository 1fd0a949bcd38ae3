"""Which means confine the commands of this machine: bubblewrap, else Landlock, else none, and then no command runs."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import enter
from lyma_server.isolation.bwrap import ROOT_CAPABILITIES, bwrap_arguments
from lyma_server.isolation.confinement import PRIVATE
from lyma_server.isolation.enter import OWN_RUNTIME
from lyma_server.isolation.grants import Files
from lyma_server.isolation.landlock import SCOPES_SINCE
from lyma_server.isolation.unix_sockets import Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from lyma_server.isolation.confinement import Confinement
    from lyma_server.isolation.enter import Runtime
    from lyma_server.isolation.probe import Means

TEMPORARY: Final = "/tmp"  # noqa: S108 - private in there, or only a folder of it is open
HOOKS: Final = "hooks"
CAPABILITIES: Final = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "SETGID": 6, "SETUID": 7}
"""From include/uapi/linux/capability.h, those that root keeps."""

WEAKER: Final = (
    "Commands are confined by Landlock alone, since {hindrance}. They cannot list the folders above Lyma's home or make "
    "files directly in them, have their temporary files in $TMPDIR only, no terminals and no Unix sockets."
)
SIGNALS_OPEN: Final = "This kernel cannot keep the signals of commands from your other programs; Linux 6.12 can."
HOOKS_OPEN: Final = "Commands can change the git hooks of the workspace."
ALL_SOCKETS_OPEN: Final = (
    "Here a single socket cannot be let in, so `executor.sockets` lets commands reach every Unix socket that you can."
)
ABSTRACT_OPEN: Final = (
    "Here `executor.sockets` also lets commands reach every abstract socket; Linux 6.12 can keep them."
)


@frozen
class Fence:
    """`words` start a program confined; the program and its own words come after them.

    The first process of these words is the life of all that runs in it: when it is killed, all of it ends. File
    descriptors that it inherits reach the program. `environment` is what every command needs to see beside its own: the
    private folder for temporary files, which is made and removed with what runs in it. So one fence is not started twice at a time.
    `reach` says which sockets must be hidden that appear later; null where none can be reached. `notices` are for a person.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    reach: Reach | None = None
    notices: tuple[str, ...] = ()


def enclose(means: Means, confinement: Confinement, runtime: Runtime = OWN_RUNTIME) -> Fence:
    """The strongest fence that the machine has. It is not proven yet: `canary.prove_mask` must see that it holds.

    Raises MaskUnavailable where the machine has no means to confine.
    """
    if means.bwrap is not None:
        limits, notices = _beside_bwrap(means.landlock, confinement)
        words = (str(means.bwrap), *bwrap_arguments(confinement), *enter.words(limits, runtime))
        reach = None if limits["deny_sockets"] else _reach(confinement)
        return Fence(words, {"TMPDIR": TEMPORARY}, reach, notices)
    if means.landlock:
        limits, notices = _landlock_alone(means, confinement)
        return Fence(enter.words(limits, runtime), {"TMPDIR": limits["files"]["scratch"]}, None, notices)
    raise MaskUnavailable(
        f"Lyma's home could not be hidden from commands, so none runs: {means.hindrance}.", remedy=means.hindrance
    )


def _beside_bwrap(landlock: int, confinement: Confinement) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Its network is the host's, and with it the abstract sockets are: those Landlock keeps within, or none can be made."""
    scoped = landlock >= SCOPES_SINCE
    notices = (ABSTRACT_OPEN,) if confinement.sockets and not scoped else ()
    return _limits(landlock, None, deny_sockets=not scoped and not confinement.sockets), notices


def _landlock_alone(means: Means, confinement: Confinement) -> tuple[dict[str, Any], tuple[str, ...]]:
    files = Files(
        masked=_names(confinement.masked),
        writable=_names(confinement.writable),
        everywhere=confinement.write == "everywhere",
        read_only=_names(path for path in confinement.read_only if path.name != HOOKS),
        shown=_names(path.resolve() for path in confinement.shown),
        scratch=f"{TEMPORARY}/lyma-{secrets.token_hex(8)}",
    )
    limits = _limits(means.landlock, files, deny_sockets=not confinement.sockets)
    if confinement.as_root:
        limits["capabilities"] = [CAPABILITIES[name] for name in ROOT_CAPABILITIES]
    notices = (
        WEAKER.format(hindrance=means.hindrance),
        *((SIGNALS_OPEN,) if means.landlock < SCOPES_SINCE else ()),
        *((HOOKS_OPEN,) if any(path.name == HOOKS for path in confinement.read_only) else ()),
        *((ALL_SOCKETS_OPEN,) if confinement.sockets else ()),
    )
    return limits, notices


def _limits(abi: int, files: Files | None, *, deny_sockets: bool) -> dict[str, Any]:
    return {
        "abi": abi,
        "files": files._asdict() if files else None,
        "deny_sockets": deny_sockets,
        "capabilities": [] if files else None,
    }


def _reach(confinement: Confinement) -> Reach:
    """Only bubblewrap's sandbox can be changed once it runs, and only there a socket may be within reach at all."""
    return Reach((*PRIVATE, *confinement.masked), confinement.workspace, confinement.sockets)


def _names(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(map(str, paths))
