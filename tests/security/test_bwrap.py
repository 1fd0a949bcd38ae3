"""The real bubblewrap, as root and as a plain user: what commands cannot see, change or reach."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import canary, probe
from lyma_server.isolation.bwrap import bwrap_arguments
from lyma_server.isolation.confinement import confine
from lyma_server.isolation.process import run_helper
from lyma_server.isolation.surroundings import survey

PLAIN = 54321
BWRAPS = probe.find_bwraps()
pytestmark = pytest.mark.skipif(not BWRAPS or sys.platform != "linux", reason="bubblewrap is not here")


@pytest.fixture(params=["workspace", "everywhere"])
def write(request):
    return request.param


@pytest.fixture(
    params=[pytest.param("root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")), "plain"]
)
def world(request, write):
    """A home with a key, a workspace, and how to run in it."""
    base = Path(tempfile.mkdtemp(prefix="lyma-test-", dir="/var/tmp"))  # /tmp is private inside
    base.chmod(0o755)
    yield World(base, request.param, write)
    shutil.rmtree(base)


class World:
    def __init__(self, base: Path, who: str, write: str) -> None:
        self.home, self.work = base / "home/dev", base / "home/dev/work"
        self.lyma = self.home / ".lyma"
        for folder in (self.work, self.lyma):
            folder.mkdir(parents=True)
        (self.lyma / "config.toml").write_text("key = 'canary'")
        (self.home / "notes").write_text("notes")
        self.as_root = who == "root"
        self.drop = (
            [] if self.as_root or os.geteuid() != 0 else [f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups"]
        )
        if self.drop:
            subprocess.run(["chown", "-R", f"{PLAIN}:{PLAIN}", str(base)], check=True)
        around = survey(self.work, self.home, [self.lyma])
        self.bounds = confine(evolve(around, as_root=self.as_root), write=write)

    def words(self, bounds=None) -> list[str]:
        prefix = ["/usr/bin/setpriv", *self.drop, "--"] if self.drop else []
        return [*prefix, str(BWRAPS[0]), *bwrap_arguments(bounds or self.bounds)]

    async def run(self, script: str, bounds=None) -> tuple[int, str]:
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home)}
        words = [*self.words(bounds), "/bin/sh", "-c", script]
        result = await run_helper(words, env=environment, cwd=self.work)
        return result.status, (result.stdout + result.stderr).decode()


async def test_the_mask_holds_and_is_proven(world):
    await canary.prove_mask(world.words(), world.bounds)
    assert await world.run(f"ls -A {world.lyma}") == (0, "")
    assert [file.name for file in world.lyma.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    "road",
    [
        "echo x > {lyma}/config.toml",
        "mkdir {lyma}/approvals",
        "umount {lyma}",
        "mount -o remount,rw {lyma}",
        "mount --bind {home} /mnt && cat /mnt/.lyma/config.toml",
        "unshare -rm umount {lyma} && cat {lyma}/config.toml",
        "unshare -rm sh -c 'mount --bind {home} /mnt && cat /mnt/.lyma/config.toml'",
        "unshare -rm sh -c 'mount -o remount,rw {lyma} && touch {lyma}/x'",
        "rmdir {lyma}",
        "mv {lyma} {home}/moved",
        "mv {home} {home}2 && mkdir -p {lyma} && echo forged > {lyma}/config.toml",
        "ln {lyma}/config.toml stolen",
        "cat /proc/1/root{lyma}/config.toml",
        "cat /proc/$PPID/root{lyma}/config.toml",
        "cat /proc/*/root{lyma}/config.toml 2>/dev/null",
        "nsenter -t 1 -m cat {lyma}/config.toml",
        "chroot / cat {lyma}/config.toml",
        "setpriv --reuid 12345 cat {lyma}/config.toml",
    ],
)
async def test_no_road_leads_past_the_mask(world, road):
    status, said = await world.run(road.format(lyma=world.lyma, home=world.home))
    assert status != 0, said
    assert "canary" not in said
    assert (world.lyma / "config.toml").read_text() == "key = 'canary'"
    assert world.lyma.is_dir()


async def test_a_bind_after_the_mask_would_show_it_and_the_canary_sees_that(world):
    """The control: what the canary is for."""
    words = [*world.words(), "--bind", str(world.home), str(world.home)]
    with pytest.raises(MaskUnavailable, match="can be read"):
        await canary.prove_mask(words, world.bounds)
    unclosed = [word for word in world.words() if word != "--remount-ro"]
    unclosed = unclosed[: unclosed.index(str(world.lyma)) + 1]
    with pytest.raises(MaskUnavailable, match="can be written"):
        await canary.prove_mask(unclosed, world.bounds)


async def test_a_mask_on_a_link_or_on_nothing_starts_no_command(world):
    (world.home / "link").symlink_to(world.lyma)
    for place in (world.home / "link", Path("/nowhere/lyma")):
        bounds = evolve(world.bounds, write="workspace", pinned=(), writable=(world.work,), masked=(place,))
        status, _ = await world.run("true", bounds)
        assert status != 0


async def test_the_workspace_can_be_worked_in(world):
    status, said = await world.run("echo new > file && mkdir -p a/b && mv file a/b && cat a/b/file && rm -r a")
    assert (status, said) == (0, "new\n")
    assert await world.run("cat ../notes; echo x > /tmp/x && cat /tmp/x && ls -A /tmp") == (0, "notesx\nx\n")


async def test_what_lies_outside_is_written_only_where_that_is_asked_for(world, write):
    status, said = await world.run("echo changed > ../notes")
    assert (status == 0) is (write == "everywhere"), said
    assert ((world.home / "notes").read_text() == "changed\n") is (write == "everywhere")


@pytest.mark.parametrize(
    "deed",
    [
        "echo x > /proc/sys/kernel/core_pattern",
        "echo h > /proc/sysrq-trigger",
        "echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        "mount -t tmpfs none /mnt",
        "mount -o remount,rw /",
        "mknod disk b 254 0",
        "mknod /dev/disk b 254 0",
        "find /dev -type b | grep .",
        "mount -t proc proc /mnt",
        "dmesg -c",
        "date -s 2001-01-01",
        "ip link set lo down",
        "test -e /run/systemd || ls -A /run | grep -v -e systemd -e resolvconf | grep .",
    ],
)
async def test_the_machine_is_out_of_reach(world, deed):
    status, said = await world.run(deed)
    assert status != 0, said


async def test_processes_outside_are_not_seen(world):
    _, said = await world.run("cat /proc/[0-9]*/comm")
    assert set(said.split()) <= {"bwrap", "sh", "cat"}
    assert "bwrap" in said


async def test_no_process_outside_can_be_ended(world):
    with subprocess.Popen(["sleep", "60"]) as outside:
        await world.run(f"kill -9 {outside.pid}; kill -9 -1")
        assert outside.poll() is None
        outside.kill()


async def test_sockets_of_the_host_are_out_of_reach_unless_let_in(world):
    connect = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('reached')"
    place = world.home / "editor.sock"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as hidden:
        server.bind(str(place))
        server.listen()
        hidden.bind(f"/tmp/lyma-test-{os.getpid()}")
        hidden.listen()
        place.chmod(0o777)
        around = survey(world.work, world.home, [world.lyma])
        assert place in around.hidden_sockets
        bounds = confine(evolve(around, as_root=world.as_root), write=world.bounds.write)
        shown = confine(evolve(around, as_root=world.as_root), write=world.bounds.write, sockets=(place,))
        for path, chosen, reached in (
            (place, bounds, False),
            (hidden.getsockname(), bounds, False),
            (place, shown, True),
        ):
            _, said = await world.run(f'/usr/bin/python3 -c "{connect}" {path}', chosen)
            assert ("reached" in said) is reached, said
        os.unlink(hidden.getsockname())


async def test_unpinned_a_folder_above_the_mask_could_be_replaced(world, write):
    """The control: what the pins are for."""
    road = f"mv {world.home} {world.home}2 && mkdir -p {world.lyma} && echo forged > {world.lyma}/config.toml"
    status, _ = await world.run(road, evolve(world.bounds, pinned=()))
    assert (status == 0) is (write == "everywhere")


async def test_root_can_work_in_another_user_s_workspace(world):
    if not world.as_root:
        return
    subprocess.run(["chown", "-R", "1000:1000", str(world.work)], check=True)
    status, said = await world.run("echo a > file && chown 1000:1000 file && chmod 600 file && cat file")
    assert (status, said) == (0, "a\n")
    assert (world.work / "file").stat().st_uid == 1000


async def test_the_probe_finds_what_works():
    means = await probe.probe()
    assert means.bwrap in BWRAPS
    assert means.hindrance == ""
    assert isinstance(means.landlock, int)


async def test_the_probe_says_what_hinders(monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "find_bwraps", list)
    assert "apt install bubblewrap" in (await probe.probe()).hindrance
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(probe, "find_bwraps", lambda: [broken])
    monkeypatch.setattr(probe, "CONTAINER_MARKS", ())
    means = await probe.probe()
    assert means.bwrap is None
    assert "No permissions to create a new namespace" in means.hindrance
    monkeypatch.setattr(probe, "_setting", lambda name: "1" if "apparmor" in name else "")
    assert "AppArmor" in (await probe.probe()).hindrance
