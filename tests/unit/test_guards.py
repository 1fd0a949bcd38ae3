"""The watch over the tests, each part seen to bite."""

from __future__ import annotations

import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests import guards, skips

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="this kernel has no /proc")


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("0.0.0.0", 0), ("::", 0), ("10.0.0.1", 9)])
def test_the_network_is_out_of_reach(address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as one, pytest.raises(guards.OutsideLoopback):
        one.connect(address)
    with socket.socket(family) as one, pytest.raises(guards.OutsideLoopback):
        one.bind(address)


def test_names_of_the_network_are_not_asked_for():
    with pytest.raises(guards.OutsideLoopback):
        socket.getaddrinfo("example.org", 80)


def test_loopback_is_open(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))


@LINUX
def test_a_process_left_running_is_found_also_as_an_orphan():
    before = guards.living_children()
    subprocess.run(["sh", "-c", "setsid sleep 60 & "], check=True)
    found = guards.left_over(before)
    assert list(found.values()) == ["sleep 60"]
    for pid in found:
        subprocess.run(["kill", "-9", str(pid)], check=True)


@LINUX
def test_a_listener_beyond_loopback_is_found_in_a_child(tmp_path):
    program = "import socket; s = socket.create_server((%r, 0)); print(1, flush=True); input()"
    for address, found in (("0.0.0.0", True), ("127.0.0.1", False)):
        with subprocess.Popen([sys.executable, "-c", program % address], stdin=-1, stdout=-1) as child:
            child.stdout.readline()
            assert bool(guards.listeners(guards.sockets_of({child.pid}))) is found
            child.communicate(b"\n")


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("0100007F", True),
        ("00000000", False),
        ("00000000000000000000000001000000", True),
        ("0000000000000000FFFF00000100007F", True),
        ("0" * 32, False),
        ("0000000000000000FFFF000000000000", False),
    ],
)
@pytest.mark.skipif(sys.byteorder != "little", reason="this kernel writes words the other way round")
def test_the_kernel_s_way_to_write_an_address_is_read(address, inside):
    assert guards.is_loopback(address) is inside


@pytest.mark.parametrize(
    ("strict", "reason", "outcome"),
    [
        (True, "emacs is not installed", "failed"),
        (True, "this kernel has no Landlock", "skipped"),
        (False, "emacs is not installed", "skipped"),
    ],
)
def test_where_all_must_run_a_skip_is_a_failure(monkeypatch, strict, reason, outcome):
    monkeypatch.setattr(skips, "STRICT", strict)
    report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("file", 1, f"Skipped: {reason}"))
    skips.judge(report)
    assert report.outcome == outcome
