"""What the canary tries from inside a fence: everything here must fail. Standard library only, run as a program.

Its one argument is JSON: `proof` is what to say where all failed, `masked` are folders, `sentinels` files in them, `temporary`
a file of /tmp outside, `disks` block devices outside, `sockets` addresses outside where somebody listens (an abstract one
begins with `@`), and `environment` the digest of an environment outside.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DISK = MADE = "canary-made"


def complaints(trial: dict[str, Any]) -> Iterator[str]:
    """What could be done, as clauses. Only the first should be asked for: the later trials change what they can."""
    for file in map(Path, trial["sentinels"]):
        if works(file.read_bytes):
            yield f"{file.parent} can be read"
    for home in map(Path, trial["masked"]):
        yield from _of_folder(home)
    if works(Path(trial["temporary"]).read_bytes):
        yield "the temporary files of others can be read"
    if any(works(open_disk, disk) for disk in trial["disks"]):
        yield "there are block devices"
    if works(os.mknod, DISK, 0o600 | stat.S_IFBLK, os.makedev(7, 0)):
        Path(DISK).unlink()
        yield "block devices can be made"
    for address in trial["sockets"]:
        if works(connect, address):
            yield f"the socket {address} can be reached"
    if trial["environment"] in environments():
        yield "the environment of Lyma can be read"


def _of_folder(home: Path) -> Iterator[str]:
    if not home.is_dir():
        yield f"{home} is not there"
    with suppress(PermissionError):
        if list(home.iterdir()):
            yield f"{home} can be read"
    if works((home / MADE).touch) or works((home / MADE).mkdir):
        yield f"{home} can be written"
    moved = home.with_name(f"{home.name}.canary")
    if works(home.rename, moved):
        moved.rename(home)
        yield f"{home} can be replaced"


def works(deed: Callable[..., object], *arguments: object) -> bool:
    try:
        deed(*arguments)
    except OSError:
        return False
    return True


def open_disk(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(1)
        end.connect(f"\0{address[1:]}" if address.startswith("@") else address)


def environments() -> set[str]:
    """Digests of the environments of all processes that can be looked into."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found.add(hashlib.sha256(place.read_bytes()).hexdigest())
    return found


def main() -> None:
    trial = json.loads(sys.argv[1])
    sys.stdout.write(next(complaints(trial), trial["proof"]))


if __name__ == "__main__":
    main()
