"""Finds files and lines below a folder: with ripgrep where it is installed, else with a slower program of our own."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.errors import ToolError

if TYPE_CHECKING:
    from lyma_server.isolation.process import HelperResult

TIMEOUT_S = 30
MOST_MATCHES_A_FILE = 100
RIPGREP = (
    "--no-config",
    "--no-messages",
    "--crlf",
    "--hidden",
    "--null",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--line-number",
    "--max-columns=300",
    "--max-columns-preview",
    "--max-filesize=8M",
    f"--max-count={MOST_MATCHES_A_FILE}",
    "--sort=path",
)


@frozen
class Wanted:
    """What to look for. `path` lies in `folder`; `pattern` null lists files; `glob` narrows them. `root` is the workspace."""

    folder: Path
    root: Path
    path: str = "."
    pattern: str | None = None
    glob: str | None = None
    ignore_case: bool = False


@frozen
class Match:
    path: str
    line: int
    text: str


async def find_files(wanted: Wanted) -> list[str]:
    """Their paths, relative to the folder. Raises ToolError."""
    output = await _find(wanted)
    return [_name(path) for path in output.split(b"\0") if path]


async def find_matches(wanted: Wanted) -> list[Match]:
    """Lines that match the regular expression. Raises ToolError where it is none."""
    output = await _find(wanted)
    found = []
    for row in output.split(b"\n"):
        path, _, rest = row.partition(b"\0")
        number, _, text = rest.partition(b":")
        if number.isdigit():
            found.append(Match(_name(path), int(number), text.removesuffix(b"\r").decode(errors="replace")))
    return found


def ripgrep(root: Path) -> str | None:
    """Where ripgrep is. One that lies in the workspace is not ours to run."""
    found = shutil.which("rg", path=os.environ.get("PATH", os.defpath))
    if found is None or not Path(found).is_absolute() or Path(found).resolve().is_relative_to(root):
        return None
    return found


async def _find(wanted: Wanted) -> bytes:
    from lyma_server.isolation.process import HelperFailed, run_helper

    program = ripgrep(wanted.root)
    argv, stdin = (_arguments(program, wanted), b"") if program else _scan(wanted)
    try:
        result = await run_helper(argv, stdin=stdin, cwd=wanted.folder, timeout_s=TIMEOUT_S)
    except HelperFailed as error:
        raise ToolError(f"The search found too much or took too long ({error.message}); narrow it.") from error
    return _checked(result)


def _arguments(program: str, wanted: Wanted) -> list[str]:
    globs = [*([f"--glob={wanted.glob}"] if wanted.glob else []), "--glob=!.git"]
    if wanted.pattern is None:
        return [program, "--files", *RIPGREP, *globs, "--", wanted.path]
    case = ["--ignore-case"] if wanted.ignore_case else []
    return [program, *RIPGREP, *case, *globs, f"--regexp={wanted.pattern}", "--", wanted.path]


def _scan(wanted: Wanted) -> tuple[list[str], bytes]:
    script = Path(__file__).with_name("scan.py")
    question = {
        "pattern": wanted.pattern,
        "glob": wanted.glob,
        "ignore_case": wanted.ignore_case,
        "path": wanted.path,
    }
    return [sys.executable, "-I", "-S", str(script)], json.dumps(question).encode()


def _checked(result: HelperResult) -> bytes:
    """Exit 2 means a bad pattern, or files that could not be read: then what was found still counts."""
    if result.status in {0, 1} or result.stdout:
        return result.stdout
    reason = result.stderr.decode(errors="replace").strip()[:500] or f"it ended with status {result.status}"
    raise ToolError(f"The search failed: {reason}")


def _name(path: bytes) -> str:
    return os.fsdecode(path).removeprefix("./")
