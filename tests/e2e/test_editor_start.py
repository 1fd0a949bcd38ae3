"""How the server starts: lightly, and with little to say on the command line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lyma_server import __version__
from lyma_server.editor.app import serve
from tests.editors.real_server import COMMAND
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {
    "anthropic",
    "openai",
    "httpx2",
    "httpx",
    "pydantic",
    "rich",
    "prompt_toolkit",
    "tomlkit",
    "jsonschema",
    "sqlite3",
    "lyma_server.compose",
}
OURS_AT_MOST = 30


def imported(errors: bytes) -> set[str]:
    """Modules in the report of `-X importtime`."""
    lines = errors.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_nothing_heavy_is_imported_before_the_editor_is_ready(tmp_path: Path) -> None:
    command = (sys.executable, "-X", "importtime", *COMMAND[1:])
    with RawClient(command, env={"LYMA_HOME": str(tmp_path)}) as client:
        client.call("initialize", {"processId": None, "capabilities": {}})
        modules = imported(bytes(client.errors))
        assert "pygls.lsp.server" in modules
        assert {module for module in modules if module in HEAVY or module.partition(".")[0] in HEAVY} == set()
        ours = {module for module in modules if module.startswith("lyma_server")}
        assert len(ours) <= OURS_AT_MOST, sorted(ours)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve([option]) == 0
    assert capsys.readouterr().out == f"lyma-server {__version__}\n"


def test_help_and_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(["--help"]) == 0
    assert "usage:" in capsys.readouterr().out
    assert serve(["--port", "80"]) == 2
    found = capsys.readouterr()
    assert (found.out, found.err.splitlines()[0]) == ("", "lyma-server: --port is not an option.")


def test_lyma_serve_is_the_same(tmp_path: Path) -> None:
    with RawClient((sys.executable, "-m", "lyma_server", "serve"), env={"LYMA_HOME": str(tmp_path)}) as client:
        assert client.initialize()["serverInfo"]["name"] == "lyma"


def test_a_person_at_a_terminal_is_told(tmp_path: Path) -> None:
    script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    ended = subprocess.run(
        [sys.executable, "-c", script, *COMMAND], input=b"\x04", capture_output=True, timeout=30, check=False
    )
    assert b"In a terminal, use `lyma`" in ended.stdout
