"""How long a verdict takes: on the text of a command, its reader included, and on a program at execve."""

from __future__ import annotations

import json
from pathlib import Path

from bench.measure import Figure, Report, figure, timed
from lyma_server.executor import shell
from lyma_server.executor.verdict import judge, judge_exec

ROWS = Path(__file__).resolve().parents[1] / "tests/data/commands.json"
HOME, WORKSPACE, LYMA_HOME = "/home/dev", "/home/dev/app", "/home/dev/.lyma"
REPEATS = 200
EXECS = (
    ("/bin/ls", ["ls", "-la"]), ("/bin/rm", ["rm", "-rf", "build"]), ("/usr/bin/git", ["git", "commit", "-m", "a message"]),
    ("/usr/bin/python3", ["python3", "-m", "pytest", "-q"]), ("/bin/cat", ["cat", "/etc/hosts"]), ("/bin/rm", ["rm", "-rf", "/home/dev"]),
    ("/usr/bin/gcc", ["gcc", "-O2", "-Iinclude", *(f"src/{n}.c" for n in range(10)), "-o", "x"]),
)  # fmt: skip
"""Programs as a build or a test run starts them, and one that is refused."""


def report() -> Report:
    """Both medians, over every labelled command and over some programs."""
    return Report(figures=(_of_texts(), _of_execs()))


def _of_texts() -> Figure:
    rows = json.loads(ROWS.read_text(encoding="utf-8"))
    pairs = []
    for row in rows:
        shell.forget()
        pairs.append(
            (timed(lambda row=row: judge(row["command"], cwd=row["cwd"], home=HOME, workspace=WORKSPACE)), 0.0)
        )
    return figure("a verdict on a command, shfmt included", pairs, target=5.0, unit="ms more")


def _of_execs() -> Figure:
    def judged(path: str, argv: list[str]) -> None:
        for _ in range(REPEATS):
            judge_exec(path, argv, WORKSPACE, home=HOME, workspace=WORKSPACE, lyma_home=LYMA_HOME)

    pairs = [(timed(lambda path=path, argv=argv: judged(path, argv)) / REPEATS, 0.0) for path, argv in EXECS * 3]
    return figure("a verdict at execve", pairs, target=0.1, unit="ms more", runs=len(pairs) * REPEATS)
