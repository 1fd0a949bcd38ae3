"""A home with a key, a workspace, and how to run in it: by each means that confines, as root and as a plain user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.isolation import kernel, probe
from lyma_server.isolation.confinement import confine
from lyma_server.isolation.enter import OWN_RUNTIME, Runtime
from lyma_server.isolation.probe import Means
from lyma_server.isolation.process import run_helper
from lyma_server.isolation.surroundings import survey
from lyma_server.isolation.tier import enclose

PLAIN = 54321
PLAINLY = ["/usr/bin/setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups", "--"]
PYTHON = "/usr/bin/python3"
"""That of the system: ours may lie where a plain user may not go, as may this checkout, so the parts needed are copied."""

PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
PARTS = ("enter", "reaper", "kernel", "landlock", "grants", "socket_filter", "seccomp", "canary_inside", "__init__")


def works(bwrap: Path, *, plainly: bool) -> bool:
    """Whether bubblewrap does anything here: in a container it mostly does not."""
    prefix = [*(PLAINLY if os.geteuid() == 0 else []), str(bwrap), "--unshare-user"] if plainly else [str(bwrap)]
    return subprocess.run([*prefix, *probe.TRIAL], capture_output=True, check=False).returncode == 0


BWRAPS = [path for path in probe.find_bwraps() if works(path, plainly=os.geteuid() != 0)]
PLAIN_BWRAPS = [path for path in BWRAPS if works(path, plainly=True)]


def caught_in_its_start(reading: int, info: int, program: str) -> list[str]:
    """The words of a bubblewrap that makes its child, and lets it go on when something is said on the pipe `reading`."""
    wait = ["--info-fd", str(info), "--userns-block-fd", str(reading)]
    words = [str(PLAIN_BWRAPS[0]), "--unshare-all", "--unshare-user", "--die-with-parent", *wait]
    return [*words, "--ro-bind", "/usr", "/usr", "--", PYTHON, program]


LANDLOCK = kernel.landlock_abi()
MEANS = {
    "bwrap": Means(next(iter(BWRAPS), None), "", LANDLOCK, True),
    "other bwrap": Means(next(iter(BWRAPS[1:]), None), "", LANDLOCK, True),
    "landlock": Means(None, "bubblewrap is not installed", LANDLOCK, True),
}
"""The system's bubblewrap and the package's, as far as they are here and work."""

ABSENT = {
    "bwrap": "this kernel or container lets bubblewrap do nothing",
    "other bwrap": "there is no second bubblewrap",
    "landlock": "this kernel has no Landlock",
}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="this kernel is not Linux")
WHO = [pytest.param("root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")), "plain"]
WRITE = ["workspace", "everywhere"]
FULL = {"other bwrap": [pytest.mark.full]}
"""It is the same program, of another age."""
TIERS = [
    pytest.param(
        name,
        marks=[
            pytest.mark.skipif(("bwrap" in name and means.bwrap is None) or means.tier == "none", reason=ABSENT[name]),
            *FULL.get(name, []),
        ],
    )
    for name, means in MEANS.items()
]


@contextmanager
def made_world(tier: str, who: str, write: str = "workspace", **more):
    """Outside /tmp, which is private inside."""
    if "bwrap" in tier and who == "plain" and MEANS[tier].bwrap not in PLAIN_BWRAPS:
        pytest.skip("this kernel or container gives a plain user no namespaces")
    base = Path(tempfile.mkdtemp(prefix="lyma-test-", dir="/var/tmp"))
    base.chmod(0o755)
    try:
        yield World(base, tier, who, write, **more)
    finally:
        shutil.rmtree(base)


class World:
    def __init__(self, base: Path, tier: str, who: str, write: str, *, abi: int | None = None) -> None:
        self.home, self.work = base / "home/dev", base / "home/dev/work"
        self.lyma = self.home / ".lyma"
        self.tier, self.write, self.as_root = tier, write, who == "root"
        self.means = MEANS[tier] if abi is None else evolve(MEANS[tier], landlock=abi)
        for folder in (self.work, self.lyma):
            folder.mkdir(parents=True)
        (self.lyma / "config.toml").write_text("key = 'canary'")
        (self.home / "notes").write_text("notes")
        self.drop = [] if self.as_root or os.geteuid() != 0 else PLAINLY
        self.runtime = readable_by_all(base / "packages") if self.drop else OWN_RUNTIME
        if self.drop:
            subprocess.run(["chown", "-R", f"{PLAIN}:{PLAIN}", str(base / "home")], check=True)
        self.bounds = self.confine()

    def confine(self, **settings):
        """What may be done, as found now."""
        around = evolve(survey(self.work, self.home, [self.lyma]), as_root=self.as_root)
        return confine(around, write=self.write, **settings)

    def enclose(self, bounds=None):
        return enclose(self.means, bounds or self.bounds, self.runtime)

    def words(self, bounds=None) -> list[str]:
        return [*self.drop, *self.enclose(bounds).words]

    async def run(self, script: str, bounds=None, *, arguments=(), environment=(), timeout_s=30) -> tuple[int, str]:
        fence = self.enclose(bounds)
        given = {"PATH": PATH, "HOME": str(self.home), **fence.environment, **dict(environment)}
        words = [*self.drop, *fence.words, "/bin/sh", "-c", script, "sh", *map(str, arguments)]
        result = await run_helper(words, env=given, cwd=self.work, timeout_s=timeout_s)
        return result.status, (result.stdout + result.stderr).decode()

    async def run_each(self, scripts: list[str]) -> dict[str, tuple[int, str]]:
        """Each in a shell of its own, all in one fence."""
        each = 'for s do echo "@@$s@@"; sh -c "$s" 2>&1 </dev/null; echo "@@$?"; done'
        _, said = await self.run(each, arguments=scripts)
        parts = said.split("@@")[1:]
        return {parts[at]: (int(parts[at + 2].split()[0]), parts[at + 1]) for at in range(0, len(parts), 3)}


def readable_by_all(folder: Path) -> Runtime:
    for part in ("__init__.py", *(f"isolation/{name}.py" for name in PARTS)):
        copy = folder / "lyma_server" / part
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(OWN_RUNTIME.packages / "lyma_server" / part, copy)
    return Runtime(os.path.realpath(PYTHON), folder)
