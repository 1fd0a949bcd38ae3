"""What the checks look at, and the program that runs one: `python3 facts.py`, in the folder that holds `work` and `before`.

It stands alone and is copied beside the check, because checks run what a model wrote: confined, as the agent's commands are.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORK, BEFORE = Path("work"), Path("before")
LEAVINGS = {"__pycache__", ".pytest_cache", ".git"}
NOT_DONE = 1


def run(*words: str, folder: Path = WORK, stdin: str = "") -> str:
    """What a program says that must succeed."""
    done = subprocess.run(words, cwd=folder, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}"
    return done.stdout


def python(program: str, folder: Path = WORK) -> str:
    """What a piece of Python says in the repository."""
    return run("python3", "-B", "-c", program, folder=folder).strip()


def own_tests_pass(folder: Path = WORK) -> None:
    """The repository's own tests, of which there is at least one."""
    program = "import sys, unittest; r = unittest.main(module=None, argv=['t', 'discover'], exit=False).result; "
    run("python3", "-B", "-c", program + "sys.exit(not (r.wasSuccessful() and r.testsRun))", folder=folder)


def text(name: str, folder: Path = WORK) -> str:
    """A file's text, its line ends as they are."""
    path = folder / name
    assert path.is_file(), f"there is no {name}"
    return path.read_bytes().decode("utf-8")


def files(folder: Path) -> dict[str, bytes]:
    """Contents by name, without what tools leave behind."""
    found = (path for path in folder.rglob("*") if path.is_file() and not LEAVINGS & set(path.parts))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def changed() -> set[str]:
    """Files that were made, changed or removed."""
    before, after = files(BEFORE), files(WORK)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def only_changed(*names: str) -> None:
    """Nothing but these files, and each of these."""
    assert changed() == set(names), f"changed: {', '.join(sorted(changed())) or 'nothing'}"


def main() -> int:
    """1 and what is missing where the task is not done; any other failure is the check's own."""
    import check

    try:
        check.check()
    except AssertionError as missing:
        print(str(missing) or "a fact does not hold")
        return NOT_DONE
    return 0


if __name__ == "__main__":
    sys.exit(main())
