"""Proves, from inside, that a fence holds: above all the mask on Lyma's home. Without a proof no command runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import stat
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation.enter import OWN_RUNTIME
from lyma_server.isolation.process import HelperFailed, run_helper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lyma_server.isolation.confinement import Confinement
    from lyma_server.isolation.enter import Runtime

FILE: Final = "canary-"
OWN_NAME: Final = re.compile(f"{FILE}[0-9a-f]{{16}}")
STALE_S: Final = 60.0
"""No proof takes so long."""

TEMPORARY: Final = Path("/tmp")  # noqa: S108 - the folder that must be private
INSIDE: Final = "lyma_server/isolation/canary_inside.py"
EMPTY: Final = hashlib.sha256().hexdigest()
"""The digest of an environment that may not be read as well as of one that is empty."""


async def prove_mask(confined: Sequence[str], confinement: Confinement, runtime: Runtime = OWN_RUNTIME) -> None:
    """Run the canary. `confined` are the words that start a program inside, which the canary's own are added to.

    Raises MaskUnavailable where the proof fails: the reason is what the canary could do.
    """
    with ExitStack() as stack:
        trial = _prepare(confinement, stack)
        words = [*confined, *runtime.bare, str(runtime.packages / INSIDE), json.dumps(trial)]
        try:
            result = await run_helper(words, env={"PATH": "/usr/bin:/bin"}, cwd="/", timeout_s=10)
        except HelperFailed as failure:
            raise _unproven(failure.message.rstrip(".")) from failure
    said = result.stdout.decode(errors="replace").strip()
    if result.status != 0 or said != trial["proof"]:
        raise _unproven(said or result.stderr.decode(errors="replace").strip() or f"status {result.status}")


def _prepare(confinement: Confinement, stack: ExitStack) -> dict[str, Any]:
    """What must be out of reach inside; all of it is within reach here. An empty folder would prove nothing."""
    sentinels = [stack.enter_context(sentinel(home, 0o600)) for home in confinement.masked]
    temporary = stack.enter_context(sentinel(TEMPORARY, 0o644))
    name = own_name()
    addresses = () if confinement.sockets else (f"@{name}", str(TEMPORARY / name))
    for address in addresses:
        stack.enter_context(listening(address))
    own = _own_environment()
    return {
        "proof": secrets.token_hex(16),
        "masked": [str(home) for home in confinement.masked],
        "sentinels": [str(file) for file in sentinels],
        "temporary": str(temporary),
        "disks": [str(file) for file in Path("/dev").iterdir() if file.is_block_device()],
        "sockets": addresses,
        "environment": "" if own == EMPTY else own,
    }


def _own_environment() -> str:
    """Its digest; that of an empty one where our memory is private, so that no program of this user may read it."""
    try:
        return hashlib.sha256(Path("/proc/self/environ").read_bytes()).hexdigest()
    except PermissionError:
        return EMPTY


def _unproven(reason: str) -> MaskUnavailable:
    return MaskUnavailable(
        f"Lyma's home could not be hidden from commands, so none runs ({reason}); `lyma doctor` says how to mend it.",
        remedy="Run `lyma doctor`.",
    )


def own_name() -> str:
    """For a file of a proof's own, unlike any other."""
    return f"{FILE}{secrets.token_hex(8)}"


@contextmanager
def sentinel(folder: Path, mode: int, name: str = "") -> Iterator[Path]:
    remove_stale(folder, time.time())
    file = folder / (name or own_name())
    file.touch(mode=mode, exist_ok=False)
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def remove_stale(folder: Path, now: float) -> None:
    """Remove our own sentinels in `folder` whose process was killed. `now` in seconds since the epoch."""
    for file in folder.glob(f"{FILE}*"):
        with suppress(OSError):
            facts = file.lstat()
            ours = facts.st_uid == os.geteuid() and OWN_NAME.fullmatch(file.name) is not None
            empty = stat.S_ISSOCK(facts.st_mode) or (stat.S_ISREG(facts.st_mode) and facts.st_size == 0)
            if ours and empty and now - facts.st_mtime > STALE_S:
                file.unlink()


@contextmanager
def listening(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        end.listen()
        try:
            if not address.startswith("@"):
                os.chmod(address, 0o666)  # noqa: S103, PTH101 - whoever reaches it is what we want to know
            yield
        finally:
            if not address.startswith("@"):
                Path(address).unlink(missing_ok=True)
