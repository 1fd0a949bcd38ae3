"""Text into a tree: shfmt, started with fixed arguments, beside our own interpreter and never through PATH."""

from __future__ import annotations

import json
import os
import re
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
MAX_KNOWN, MAX_KNOWN_TEXT = 256, 2048
OUTPUT_LIMIT = 8 << 20
MEMORY_LIMIT = 2 << 30
MAX_NESTING = 60
MAX_OPEN, MAX_JOINED = 1000, 500
_SYNTAX_ERROR = re.compile(r"(?:<standard input>:)?\d+:\d+: ")
_BRACKET = re.compile(r"(?P<opens>[({]|\b(?:if|while|until|for|case|select)\b)|[)}]|\b(?:fi|done|esac)\b")
_LEAVES = frozenset({"Pos", "End", "Position", "ValuePos", "ValueEnd", "Value", "Type", "Op", "OpPos", "Semicolon"})
_FLAT = frozenset({"Lit", "Word", "CallExpr", "BinaryCmd"})
_ARGUMENTS = ("--to-json", "-ln", "bash")
_ENVIRONMENT = {"GOMEMLIMIT": "200MiB", "GOMAXPROCS": "1"}


class Unreadable(Exception):
    """A command that cannot be read cannot be judged, so it is blocked. The message says why, as a clause.

    `syntax` says that a shell could not run it either, `instead` what to do.
    """

    def __init__(self, message: str, *, syntax: bool = False, instead: str = "Write it in a simpler form.") -> None:
        super().__init__(message)
        self.syntax, self.instead = syntax, instead


@lru_cache(maxsize=1)
def find_shfmt() -> str:
    """The absolute path of our own shfmt. Raises Unreadable where it is missing."""
    folders = dict.fromkeys((Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))))
    for folder in folders:
        candidate = folder / "shfmt"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Unreadable(
        "shfmt, which reads commands, is not installed beside Lyma",
        instead="Ask the person to install it: pip install shfmt-py, in the environment of Lyma.",
    )


def _run_shfmt(text: str, timeout_s: float) -> Any:
    from lyma_server.isolation.process import HelperFailed, run_helper_blocking

    try:
        result = run_helper_blocking(
            [find_shfmt(), *_ARGUMENTS],
            stdin=text.encode(),
            env=_ENVIRONMENT,
            cwd="/",
            timeout_s=timeout_s,
            output_limit=OUTPUT_LIMIT,
            memory_limit=MEMORY_LIMIT,
        )
    except HelperFailed as failed:
        raise Unreadable("it could not be read within the limits of time and memory") from failed
    if result.status != 0:
        reason = (result.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[0]
        syntax = result.status == 1 and _SYNTAX_ERROR.match(reason) is not None
        raise Unreadable(f"it does not parse ({reason[:200]})" if syntax else "its reader failed", syntax=syntax)
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
            waiting.extend((current[name], level) for name in current if name not in _LEAVES)
    return deepest


_known: dict[str, tuple[Statement, ...]] = {}
"""What was read lately: program text is often met again, in another state of the shell."""


def forget() -> None:
    """Read anew what was read lately."""
    _known.clear()


def parse(text: str, *, trusted: bool = False, timeout_s: float = TIMEOUT_S) -> tuple[Statement, ...]:
    """The statements of `text`. Raises Unreadable, whatever goes wrong.

    Text that the evaluation made itself is `trusted` to hold marks and control characters; its size is still limited.
    """
    fault = find_fault(text) if not trusted or len(text) > MAX_BYTES else None
    if fault:
        raise Unreadable(f"it holds {fault}")
    if _opens_too_deep(text):
        raise Unreadable(f"it nests deeper than {MAX_NESTING} levels")
    found = _known.get(text)
    if found is None:
        found = _read(text, min(timeout_s, TIMEOUT_S))
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        if len(text) <= MAX_KNOWN_TEXT:
            _known[text] = found
    return found


def _opens_too_deep(text: str) -> bool:
    """Whether brackets or loops stay open so deep that reading them would cost much memory before it is refused."""
    if len(text) < MAX_OPEN:
        return False
    if text.count("&&") + text.count("||") > MAX_JOINED:
        return True
    level = 0
    for match in _BRACKET.finditer(text):
        level += 1 if match.lastgroup == "opens" else -1
        if level > MAX_OPEN:
            return True
    return False


def _read(text: str, timeout_s: float) -> tuple[Statement, ...]:
    try:
        document = _run_shfmt(text.replace("\r\n", "\n"), timeout_s)
        return _tree_of(document)
    except (RecursionError, UnknownNode, KeyError, TypeError, ValueError, MemoryError) as error:
        raise Unreadable("its structure is not understood") from error


def _tree_of(document: Any) -> tuple[Statement, ...]:
    if document["Type"] != "File":
        raise UnknownNode(document["Type"])
    if _nesting(document) > MAX_NESTING:
        raise Unreadable(f"it nests deeper than {MAX_NESTING} levels")
    return statements(document.get("Stmts"))
