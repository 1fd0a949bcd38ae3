"""Nothing of ours can be reached over a network, loopback included: not during any turn, through any face."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.editors.real_server import COMMAND, settings
from tests.lyma import environment, run_lyma
from tests.processes import Watch, family, find, inet_listeners, wait_for
from tests.pseudo_terminal import PseudoTerminal
from tests.raw_client import RawClient
from tests.stub_provider import StubProvider, call_tool, hang, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL = b"llama_child.py"
SLOW_S = 60
"""A model on a busy machine."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: a process that holds keys hides its descriptors from all others"
)

LISTEN = """
import socket, sys
family, kind = getattr(socket, sys.argv[1]), getattr(socket, sys.argv[2])
taken = socket.socket(family, kind)
taken.bind(("::1" if sys.argv[1] == "AF_INET6" else "127.0.0.1", 0))
if sys.argv[2] == "SOCK_STREAM":
    taken.listen()
print("ready", flush=True)
input()
"""


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    """Has its tool used, and then says something."""
    with StubProvider([call_tool("search", {"pattern": "x"}), say("Hello", ", ", "you", pause_s=0.05)]) as stub:
        yield stub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "x.txt").write_text("x\n")
    return folder


def check(watch: Watch, *programs: bytes) -> None:
    """Nobody listened, and those of whom we must know this were looked at."""
    assert watch.listeners == set()
    assert watch.rounds > 10
    for program in programs:
        assert any(program in given.words for given in watch.given), (program, watch.given)


def test_an_ask_in_a_pipe(stub: StubProvider, folder: Path, tmp_path: Path) -> None:
    with Watch(sockets=True) as watch:
        done = run_lyma("ask", "--json", "hi", env=environment(**settings(stub, tmp_path / "home")), cwd=folder)
    assert done.returncode == 0, done.stderr
    check(watch, b"lyma_server\0ask")


def test_an_ask_on_a_screen(stub: StubProvider, folder: Path, tmp_path: Path) -> None:
    variables = environment(**settings(stub, tmp_path / "home"))
    with Watch(sockets=True) as watch, PseudoTerminal("ask", "hi", env=variables, cwd=folder) as screen:
        screen.expect("Hello, you")
        assert screen.leave() == 0
    check(watch, b"lyma_server\0ask")


def test_an_ask_of_an_editor(folder: Path, tmp_path: Path) -> None:
    with (
        StubProvider([call_tool("search", {"pattern": "x"}), hang("Hello")]) as stub,
        Watch(sockets=True) as watch,
        RawClient(COMMAND, env=settings(stub, tmp_path / "home")) as client,
    ):
        client.initialize(workspaceFolders=[{"uri": folder.as_uri(), "name": "work"}])
        asked = client.request("lyma/ask", {"prompt": "hi"})
        stub.wait_for_request(2)
        client.event("item.delta")
        assert inet_listeners(family(client.process.pid)) == []
        client.notify("$/cancelRequest", {"id": asked})
        assert client.reply(asked)["result"]["stopReason"] == "cancelled"
    check(watch, b"lyma_server.entry import server")


@pytest.mark.usefixtures("smollm_model")
def test_an_ask_of_the_model_on_board(tmp_path: Path) -> None:
    variables = {"LYMA_HOME": str(tmp_path), "LYMA_ORDER": "embedded"}
    with Watch(sockets=True) as watch, RawClient(COMMAND, env=variables) as client:
        client.initialize()
        asked = client.request("lyma/ask", {"prompt": "Tell me a very long story."})
        client.event("item.delta", SLOW_S)
        assert find(client.process.pid, MODEL)
        assert inet_listeners(family(client.process.pid)) == []
        client.notify("$/cancelRequest", {"id": asked})
        client.reply(asked)
    check(watch, b"lyma_server.entry import server", MODEL)


def test_the_tour(lyma_env: dict[str, str], folder: Path) -> None:
    """Its provider is ours, so it must not be on a network either."""
    with Watch(sockets=True) as watch:
        done = run_lyma("demo", env=lyma_env, cwd=folder)
    assert done.returncode == 0, done.stderr
    check(watch, b"lyma_server\0demo")


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
@pytest.mark.parametrize("domain", ["AF_INET", "AF_INET6"])
def test_whoever_listens_is_found(domain: str, kind: str) -> None:
    """The control: below a process of its own, as a helper of the server would be."""
    if domain == "AF_INET6" and not has_ipv6():
        pytest.skip("this kernel has no IPv6 on loopback")
    words = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", LISTEN, domain, kind]
    with (
        Watch(sockets=True) as watch,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as above,
    ):
        assert above.stdout.readline() == "ready\n"
        found = inet_listeners(family(above.pid))
        wait_for(lambda: watch.listeners)
        above.communicate("\n")
    assert [pid for pid, _ in found] != [above.pid]
    assert len(found) == 1


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
