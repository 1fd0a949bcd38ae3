"""Breaks one promise after another in a copy of the project, and wants the named tests to fail each time.

The rows are in promises.toml (safety) and editors.toml (what went wrong elsewhere). A row whose tests stay green is a promise that nothing holds: exit status 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).resolve().parents[2]
TABLES: Final = tuple(Path(__file__).with_name(name) for name in ("promises.toml", "editors.toml"))
COPIED: Final = ("lyma_server", "tests", "bench", "docs", "examples", "pyproject.toml", "protocol.md", "README.md")
TESTS_FAILED: Final = 1
"""The exit status of pytest where tests ran and failed; any other means that they did not run."""

MOST_S: Final = 300


@frozen
class Promise:
    """`old` stands once in `file`; with `new` in its place each of `tests` must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def broken(self, root: Path) -> str:
        """The text of the file with the promise broken. Raises ValueError where `old` does not stand there once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: found {text.count(self.old)} times in {self.file}, not once: {self.old}")
        return text.replace(self.old, self.new)


def promises() -> tuple[Promise, ...]:
    """The rows of the tables."""
    rows = [row for table in TABLES for row in tomllib.loads(table.read_text(encoding="utf-8"))["promise"]]
    return tuple(Promise(**{**row, "tests": tuple(row["tests"])}) for row in rows)


def main(words: list[str]) -> int:
    """Break all promises, or those whose name holds one of `words`."""
    chosen = [promise for promise in promises() if not words or any(word in promise.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="lyma-sabotage-", dir="/var/tmp") as folder:
        copy = Path(folder)
        copy.chmod(0o755)  # a plain user must be able to enter it
        for name in COPIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, copy / name)
        kept = [promise.name for promise in chosen if not _turns_red(promise, copy)]
    print(f"{len(chosen) - len(kept)} of {len(chosen)} broken promises were noticed")
    return 1 if kept or not chosen else 0


def _turns_red(promise: Promise, copy: Path) -> bool:
    """Whether its tests pass as things are, and each of them fails once the promise is broken."""
    start = time.monotonic()
    path = copy / promise.file
    whole = path.read_text(encoding="utf-8")
    before = _run(copy, promise.tests)
    path.write_text(promise.broken(copy), encoding="utf-8")
    try:
        after = [_run(copy, (test,)) for test in promise.tests]
    finally:
        path.write_text(whole, encoding="utf-8")
    red = before == 0 and all(status == TESTS_FAILED for status in after)
    facts = "noticed" if red else f"NOT NOTICED (whole: {before}, broken: {after})"
    print(f"{promise.name}: {facts} in {time.monotonic() - start:.0f} s", flush=True)
    return red


def _run(copy: Path, tests: tuple[str, ...]) -> int:
    """The exit status of pytest; skipped tests show nothing, so they count as not run."""
    words = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "PYTHONPATH": str(copy), "TEST_ALL": "1"}
    try:
        return subprocess.run(words, cwd=copy, env=env, capture_output=True, timeout=MOST_S, check=False).returncode
    except subprocess.TimeoutExpired:
        return TESTS_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
