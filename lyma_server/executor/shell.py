"""Text into a tree: shfmt, started with fixed arguments, beside our own interpreter and never through PATH."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lyma_server.executor.characters import MAX_BYTES, find_fault
from lyma_server.executor.tree import UnknownNode, statements

if TYPE_CHECKING:
    from lyma_server.executor.syntax import Statement

TIMEOUT_S = 2.0
OUTPUT_LIMIT = 8 << 20
MEMORY_LIMIT = 2 << 30
MAX_NESTING = 60
_FLAT = frozenset({"Lit", "Word", "CallExpr", "BinaryCmd"})
_ARGUMENTS = ("--to-json", "-ln", "bash")
_ENVIRONMENT = {"GOMEMLIMIT": "512MiB", "GOMAXPROCS": "1"}


class Unreadable(Exception):
    """A command that cannot be read cannot be judged, so it is blocked. The message says why, as a clause.

    `syntax` says that a shell could not run it either.
    """

    def __init__(self, message: str, *, syntax: bool = False) -> None:
        super().__init__(message)
        self.syntax = syntax


@lru_cache(maxsize=1)
def find_shfmt() -> str:
    """The absolute path of our own shfmt. Raises Unreadable where it is missing."""
    folders = dict.fromkeys((Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))))
    for folder in folders:
        candidate = folder / "shfmt"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Unreadable("shfmt, which reads commands, is not installed beside Lyma")


def _run_shfmt(text: str) -> Any:
    from lyma_server.isolation.process import HelperFailed, run_helper_blocking

    try:
        result = run_helper_blocking(
            [find_shfmt(), *_ARGUMENTS],
            stdin=text.encode(),
            env=_ENVIRONMENT,
            cwd="/",
            timeout_s=TIMEOUT_S,
            output_limit=OUTPUT_LIMIT,
            memory_limit=MEMORY_LIMIT,
        )
    except HelperFailed as failed:
        raise Unreadable("it could not be read within the limits of time and memory") from failed
    if result.status != 0:
        reason = result.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise Unreadable(f"it does not parse ({reason[0][:200]})", syntax=True)
    return json.loads(result.stdout)


def _nesting(node: Any) -> int:
    """Levels of structure inside one another, counted without recursion; a chain of `&&` or `|` is one level."""
    deepest, waiting = 0, [(node, 0)]
    while waiting:
        current, level = waiting.pop()
        if isinstance(current, list):
            waiting.extend((child, level) for child in current)
        elif isinstance(current, dict):
            level += current.get("Type", "Lit") not in _FLAT
            deepest = max(deepest, level)
            waiting.extend((child, level) for child in current.values() if isinstance(child, dict | list))
    return deepest


@lru_cache(maxsize=256)
def parse(text: str, *, trusted: bool = False) -> tuple[Statement, ...]:
    """The statements of `text`. Raises Unreadable, whatever goes wrong.

    Text that the evaluation made itself is `trusted` to hold marks and control characters; its size is still limited.
    """
    fault = find_fault(text) if not trusted or len(text) > MAX_BYTES else None
    if fault:
        raise Unreadable(f"it holds {fault}")
    try:
        document = _run_shfmt(text.replace("\r\n", "\n"))
        if _nesting(document) > MAX_NESTING:
            raise Unreadable(f"it nests deeper than {MAX_NESTING} levels")
        return statements(document.get("Stmts"))
    except (RecursionError, UnknownNode, KeyError, TypeError, ValueError, MemoryError) as error:
        raise Unreadable("its structure is not understood") from error
