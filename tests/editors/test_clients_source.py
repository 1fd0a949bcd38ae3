"""What the source of the thin clients may and must hold."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lyma_server.config.presets import PRESETS
from lyma_server.protocol.luacats import render_lua
from tests.editors.neovim import CLIENT, Neovim, install, program, surroundings
from tests.raw_client import ROOT

LUA = sorted(path for path in CLIENT.rglob("*.lua") if path.name != "protocol.lua")
ELISP = sorted((ROOT / "clients" / "emacs").glob("*.el"))
FUNCTION = re.compile(r"((?:^---[^\n]*\n)*)^function (M\.|View:)(\w+)\(([^)]*)\)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
FORBIDDEN = {
    "writes files": r"writefile|io\.open|io\.write|fs_write|fs_open|fs_unlink|os\.remove|os\.rename|vim\.cmd\.write|write-region|write-file|save-buffer|delete-file|append-to-file",
    "hashes": r"sha256\(|sha1|md5|secure-hash|vim\.hash",
    "judges": r"verdict|blacklist|dangerous",
    "starts programs": r"vim\.system|jobstart|os\.execute|io\.popen|uv\.spawn|shell-command|call-process",
}


def code_lines(text: str, comment: str) -> int:
    """Lines that are neither empty nor a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith(comment) for line in text.splitlines())


def test_the_clients_stay_small() -> None:
    assert sum(code_lines(path.read_text(), "--") for path in LUA) <= 940
    assert sum(code_lines(path.read_text(), ";") for path in ELISP) <= 250


@pytest.mark.parametrize("path", LUA + ELISP, ids=lambda path: path.name)
def test_they_decide_nothing(path: Path) -> None:
    text = path.read_text()
    for what, words in FORBIDDEN.items():
        assert not (found := re.search(words, text)), f"{path.name} {what}: {found}"
    for name in PRESETS:
        assert not re.search(rf"\b{name}\b", text, re.IGNORECASE), f"{path.name} names a provider"


@pytest.mark.parametrize("path", LUA, ids=lambda path: path.name)
def test_every_public_function_has_its_types(path: Path) -> None:
    for comment, _, name, parameters, body in FUNCTION.findall(path.read_text()):
        expected = [each.strip() for each in parameters.split(",") if each.strip()]
        typed = re.findall(r"^---@param ([\w.]+)\?? ", comment, re.MULTILINE)
        assert typed == expected, f"{path.name}: {name}"
        returns = re.search(r"^  return \S", body, re.MULTILINE) is not None
        assert returns <= ("---@return" in comment), f"{path.name}: {name} returns something"


def test_every_type_is_declared() -> None:
    declared = set(re.findall(r"---@(?:class|alias) (lyma\.\w+)", render_lua()))
    texts = [path.read_text() for path in LUA]
    declared |= {name for text in texts for name in re.findall(r"---@class (lyma\.\w+)", text)}
    comments = "\n".join(line for text in texts for line in text.splitlines() if line.startswith("---"))
    assert set(re.findall(r"lyma\.[A-Z]\w+", comments)) <= declared


def test_luacheck_finds_nothing() -> None:
    if shutil.which("luacheck") is None:
        pytest.skip("luacheck is not installed")
    checked = subprocess.run(["luacheck", "--no-color", "."], cwd=CLIENT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.full
def test_stylua_changes_nothing() -> None:
    folder = Path(sys.prefix) / "node"
    if not (folder / "node_modules" / "@johnnymorganz" / "stylua").exists():
        pytest.skip("StyLua is not installed")
    words = ["node", str(Path(__file__).with_name("stylua.mjs")), str(folder), *map(str, CLIENT.rglob("*.lua"))]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""


def test_the_help_has_its_tags_and_all_commands(tmp_path: Path) -> None:
    folder = tmp_path / "doc"
    shutil.copytree(CLIENT / "doc", folder)
    words = [program(), "--clean", "--headless", "-c", f"helptags {folder}", "-c", "qa"]
    made = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
    assert made.stderr == ""
    assert (folder / "tags").read_bytes() == (CLIENT / "doc" / "tags").read_bytes(), "run :helptags clients/neovim/doc"
    tags = {line.split("\t")[0] for line in (folder / "tags").read_text().splitlines()}
    plugin = (CLIENT / "plugin" / "lyma.lua").read_text()
    commands = {f":Lyma{name}" for name in re.findall(r"^  (\w+) = \{ nargs", plugin, re.MULTILINE)}
    assert len(commands) == 11
    assert commands | set(re.findall(r"<Plug>\(lyma-[\w-]+\)", plugin)) | {"lyma.txt", "lyma"} <= tags
    assert max(len(line) for line in (folder / "lyma.txt").read_text().splitlines()) <= 80


def added_ms(log: str) -> float:
    """What the client's own files took, by Neovim's own clock."""
    found = re.findall(r"^\S+\s+\S+\s+(\S+): sourcing (\S+)$", log, re.MULTILINE)
    own = [float(took) for took, path in found if "/pack/lyma/" in path or str(CLIENT) in path]
    assert own, "the client was not read"
    return sum(own)


def test_start_up_costs_at_most_a_millisecond(tmp_path: Path) -> None:
    install(tmp_path)
    env = surroundings(tmp_path, {})
    took = []
    for number in range(5):
        log = tmp_path / f"startup{number}"
        subprocess.run([program(), "--headless", "--startuptime", log, "+qa"], env=env, check=True, timeout=30)
        took.append(added_ms(log.read_text()))
    assert min(took) <= 1.0, took


def test_nothing_is_read_before_it_is_used(tmp_path: Path) -> None:
    with Neovim(tmp_path / "editor", {}) as nvim:
        loaded = "return vim.tbl_filter(function(name) return vim.startswith(name, 'lyma') end, vim.tbl_keys(package.loaded))"
        assert nvim.lua(loaded) == []
        assert nvim.lua("return #vim.lsp.get_clients()") == 0
