"""Proves, from inside, that the mask on Lyma's home holds. Without a proof no command runs."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation.process import HelperFailed, run_helper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lyma_server.isolation.confinement import Confinement

FILE: Final = "canary-"
SCRIPT: Final = """
proof=$1 outside=$2; shift 2
for home do
  test -d "$home" || { echo "$home is not there"; exit 1; }
  test -z "$(ls -A "$home")" || { echo "$home can be read"; exit 1; }
  if (: > "$home/try") 2>/dev/null || mkdir "$home/try" 2>/dev/null; then echo "$home can be written"; exit 1; fi
  if rmdir "$home" 2>/dev/null || mv "$home" "$home.moved" 2>/dev/null; then echo "$home can be replaced"; exit 1; fi
done
test -e "$outside" && { echo "/tmp is not private"; exit 1; }
test -z "$(find /dev -type b 2>/dev/null)" || { echo "there are block devices"; exit 1; }
echo "$proof"
"""
"""Arguments: what to say at the end, a file that exists outside only, and the masked folders."""


async def prove_mask(confined: Sequence[str], confinement: Confinement) -> None:
    """Run the canary. `confined` are the words that start a program inside, which the canary's own are added to.

    Raises MaskUnavailable where the proof fails: the reason is what the canary saw.
    """
    proof = secrets.token_hex(16)
    with ExitStack() as stack:
        for home in confinement.masked:
            stack.enter_context(_sentinel(home))
        outside = stack.enter_context(_sentinel(Path("/tmp")))  # noqa: S108 - the folder that must be private
        words = [*confined, "/bin/sh", "-c", SCRIPT, "sh", proof, str(outside), *map(str, confinement.masked)]
        try:
            result = await run_helper(words, env={"PATH": "/usr/bin:/bin"}, timeout_s=10)
        except HelperFailed as failure:
            raise _unproven(failure.message.rstrip(".")) from failure
    said = result.stdout.decode(errors="replace").strip()
    if result.status != 0 or said != proof:
        raise _unproven(said or result.stderr.decode(errors="replace").strip() or f"status {result.status}")


def _unproven(reason: str) -> MaskUnavailable:
    return MaskUnavailable(
        f"Lyma's home could not be hidden from commands, so none runs ({reason}); `lyma doctor` says how to mend it."
    )


@contextmanager
def _sentinel(folder: Path) -> Iterator[Path]:
    """A file that must not be seen from inside: an empty folder would prove nothing."""
    file = folder / f"{FILE}{secrets.token_hex(8)}"
    file.touch(mode=0o600)
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
