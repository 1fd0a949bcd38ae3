"""What Landlock and its socket filter are asked to do, decided on plain data."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.isolation import enter, landlock, seccomp, socket_filter
from lyma_server.isolation.bwrap import ROOT_CAPABILITIES
from lyma_server.isolation.confinement import Surroundings, confine
from lyma_server.isolation.grants import DEVICES, Files, beside, grants
from lyma_server.isolation.landlock import READ, WRITE, Right, Scope
from lyma_server.isolation.probe import Means
from lyma_server.isolation.seccomp import ALLOW, MACHINES
from lyma_server.isolation.tier import CAPABILITIES, enclose

TREE = {
    "/": ["dev", "etc", "home", "proc", "run", "srv", "sys", "tmp", "usr"],
    "/home": ["dev", "other"],
    "/home/dev": [".cache", ".lyma", ".lyma2", "app", "notes"],
    "/srv": ["lyma", "data"],
}
FILES = Files(
    masked=("/home/dev/.lyma", "/srv/lyma"),
    writable=("/home/dev/app", "/home/dev/.cache"),
    everywhere=False,
    read_only=(),
    shown=("/run/systemd/resolve/resolv.conf",),
    scratch="/tmp/lyma-1",
)


def granted(files: Files) -> dict[str, Right]:
    found: dict[str, Right] = {}
    for path, rights in grants(files, lambda folder: TREE.get(folder, [])):
        found[path] = found.get(path, Right(0)) | rights
    return found


@pytest.mark.parametrize("everywhere", [False, True])
def test_nothing_is_granted_on_the_mask_nor_above_it(everywhere):
    files = FILES._replace(everywhere=everywhere)
    for path in granted(files):
        for home in (*files.masked, "/run", "/tmp", "/dev"):
            assert Path(path) not in (Path(home), *Path(home).parents), path


@pytest.mark.parametrize("everywhere", [False, True])
def test_all_beside_it_can_be_read(everywhere):
    rights = granted(FILES._replace(everywhere=everywhere))
    for path in ("/usr", "/home/other", "/home/dev/.lyma2", "/home/dev/notes", "/srv/data", "/proc", "/sys"):
        assert READ in rights[path]
    for path in ("/home/dev/notes", "/usr", "/etc"):
        assert (WRITE in rights[path]) is everywhere
    for path in ("/proc", "/sys"):
        assert not rights[path] & WRITE
    for path in ("/home/dev/app", "/home/dev/.cache"):
        assert WRITE in rights[path]


def test_what_is_read_only_is_so_where_everything_is_writable():
    rights = granted(FILES._replace(everywhere=True, read_only=("/home/other",)))
    assert rights["/home/other"] == READ


def test_what_is_shown_shows_no_mask():
    files = FILES._replace(shown=("/srv",))
    assert "/srv" not in granted(files)
    assert "/srv/lyma" not in granted(files)
    assert "/srv/data" in granted(files)


def test_devices_are_named_one_by_one_and_no_terminal_is_among_them():
    named = {path for path in granted(FILES) if path.startswith("/dev")}
    assert named == {f"/dev/{name}" for name in (*DEVICES, "shm")}
    assert not {"ptmx", "pts", "mem", "kmsg"} & set(DEVICES)


def test_no_device_and_no_block_device_can_be_made():
    every = [*granted(FILES._replace(everywhere=True)).values()]
    assert not any(rights & (Right.MAKE_BLOCK | Right.MAKE_CHAR) for rights in every)
    assert landlock.handled_rights(1) & Right.MAKE_BLOCK


def test_names_that_begin_alike_are_not_taken_for_one_another():
    assert list(beside("/home/dev/.lyma2", ("/home/dev/.lyma",), TREE.__getitem__)) == ["/home/dev/.lyma2"]
    assert list(beside("/home/dev/.lyma", ("/home/dev/.lyma",), TREE.__getitem__)) == []


@pytest.mark.parametrize(
    ("abi", "known", "unknown", "size"),
    [
        (1, Right.MAKE_SYM, Right.REFER, 8),
        (2, Right.REFER, Right.TRUNCATE, 8),
        (3, Right.TRUNCATE, Right.IOCTL_DEV, 8),
        (4, Right.TRUNCATE, Right.IOCTL_DEV, 16),
        (5, Right.IOCTL_DEV, Right(1 << 16), 16),
        (6, Right.IOCTL_DEV, Right(1 << 16), 24),
        (7, Right.IOCTL_DEV, Right(1 << 16), 24),
    ],
)
def test_each_version_is_asked_for_what_it_knows(abi, known, unknown, size):
    rights = landlock.handled_rights(abi)
    assert rights & known
    assert not rights & unknown
    assert bool(landlock.handled_scopes(abi)) is (abi >= 6)
    attributes = landlock.ruleset_attributes(rights, landlock.handled_scopes(abi), abi)
    assert len(attributes) == size
    assert struct.unpack_from("=Q", attributes)[0] == rights
    if abi >= 6:
        assert struct.unpack_from("=Q", attributes, 16)[0] == Scope.ABSTRACT_SOCKETS | Scope.SIGNALS


def verdict(number: int, arguments: tuple[int, ...], *, audit: int, **refused: bool) -> int:
    """The filter, run by hand."""
    program = socket_filter.filter_program(MACHINES["x86_64"], **refused)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    data = struct.pack("=IIQ6Q", number, audit, 0, *(arguments + (0,) * 6)[:6])
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == seccomp.LOAD:
            value = struct.unpack_from("=I", data, operand)[0]
        elif code == socket_filter.MASK:
            value &= operand
        elif code == seccomp.RETURN:
            return operand
        else:
            holds = value == operand if code == seccomp.JUMP_EQUAL else value >= operand
            at += if_true if holds else if_false


OURS = MACHINES["x86_64"].audit
CALLS = MACHINES["x86_64"]
FLAGS = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
UPPER = 1 << 32


@pytest.mark.parametrize(
    ("number", "arguments", "action"),
    [
        (CALLS.socket, (socket.AF_UNIX, socket.SOCK_STREAM), socket_filter.REFUSE),
        (CALLS.socket, (socket.AF_UNIX, socket.SOCK_DGRAM | FLAGS), socket_filter.REFUSE),
        (CALLS.socket, (UPPER | socket.AF_UNIX, socket.SOCK_STREAM), socket_filter.REFUSE),
        (CALLS.socket, (socket.AF_INET, socket.SOCK_STREAM), ALLOW),
        (CALLS.socketpair, (socket.AF_UNIX, socket.SOCK_STREAM | FLAGS), ALLOW),
        (CALLS.socketpair, (socket.AF_UNIX, socket.SOCK_SEQPACKET), ALLOW),
        (CALLS.socketpair, (socket.AF_UNIX, socket.SOCK_DGRAM | FLAGS), socket_filter.REFUSE),
        (CALLS.socketpair, (socket.AF_UNIX, socket.SOCK_RAW), socket_filter.REFUSE),
        (CALLS.io_uring_setup, (8,), socket_filter.ABSENT),
        (CALLS.truncate, (1,), ALLOW),
        (0, (1, 1), ALLOW),
        (seccomp.X32_BIT | CALLS.socket, (socket.AF_INET,), socket_filter.REFUSE),
    ],
)
def test_the_filter_refuses_unix_sockets_and_nothing_else(number, arguments, action):
    assert verdict(number, arguments, audit=OURS, sockets=True, truncate=False) == action


def test_the_filter_refuses_to_cut_files_where_landlock_cannot():
    assert verdict(CALLS.truncate, (1,), audit=OURS, sockets=False, truncate=True) == socket_filter.REFUSE
    assert verdict(CALLS.socket, (socket.AF_UNIX,), audit=OURS, sockets=False, truncate=True) == ALLOW


def test_the_filter_refuses_other_architectures():
    assert verdict(1, (), audit=0x40000003, sockets=True, truncate=True) == socket_filter.REFUSE


HOME = Path("/home/dev")
AROUND = Surroundings(
    user_home=HOME,
    lyma_homes=(HOME / ".lyma",),
    workspace=HOME / "app",
    read_only=(HOME / "app/.git/hooks", Path("/opt/lyma_server")),
)
ALONE = Means(bwrap=None, hindrance="bubblewrap is not installed", landlock=7, exec_guard=True)
BESIDE = Means(bwrap=Path("/usr/bin/bwrap"), hindrance="", landlock=7, exec_guard=True)


def limits(fence) -> dict:
    return json.loads(fence.words[-2])


def test_alone_it_is_asked_for_all():
    asked = limits(enclose(ALONE, confine(AROUND)))
    assert asked["files"]["masked"] == [str(HOME / ".lyma")]
    assert asked["files"]["writable"] == [str(HOME / "app")]
    assert asked["files"]["read_only"] == ["/opt/lyma_server"], "a folder in the workspace cannot be taken out of it"
    assert asked["deny_sockets"] is True
    assert asked["capabilities"] == []


def test_root_keeps_what_it_keeps_under_bubblewrap():
    asked = limits(enclose(ALONE, confine(evolve(AROUND, as_root=True))))
    assert sorted(asked["capabilities"]) == sorted(CAPABILITIES[name] for name in ROOT_CAPABILITIES)
    assert set(CAPABILITIES) == set(ROOT_CAPABILITIES)


@pytest.mark.parametrize(("abi", "denied"), [(0, True), (5, True), (6, False)])
def test_beside_bubblewrap_it_keeps_abstract_sockets_or_there_are_none(abi, denied):
    fence = enclose(evolve(BESIDE, landlock=abi), confine(AROUND))
    assert limits(fence) == {"abi": abi, "files": None, "deny_sockets": denied, "capabilities": None}
    assert fence.environment == {"TMPDIR": "/tmp"}
    assert fence.notices == ()


def test_a_person_is_told_what_is_weaker():
    said = " ".join(enclose(evolve(ALONE, landlock=4), confine(AROUND, sockets=(Path("/run/docker.sock"),))).notices)
    for part in ("bubblewrap is not installed", "signals", "git hooks", "every Unix socket"):
        assert part in said
    assert "signals" not in " ".join(enclose(ALONE, confine(AROUND)).notices)
    assert "abstract" in enclose(evolve(BESIDE, landlock=5), confine(AROUND, sockets=(Path("/s"),))).notices[0]


def test_two_enclosures_share_no_temporary_files():
    one, other = (enclose(ALONE, confine(AROUND)).environment["TMPDIR"] for _ in range(2))
    assert one != other
    assert one.startswith("/tmp/lyma-")


def test_our_interpreter_starts_with_nothing_of_the_user_s():
    words = enclose(ALONE, confine(AROUND)).words
    assert words[:4] == (os.path.realpath(enter.sys.executable), "-I", "-S", "-B")


def test_an_unknown_machine_is_an_error(monkeypatch):
    monkeypatch.setattr(socket_filter.platform, "machine", lambda: "vax")
    with pytest.raises(OSError) as raised:
        socket_filter.install(sockets=True, truncate=False)
    assert raised.value.errno == errno.ENOSYS
