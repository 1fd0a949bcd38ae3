"""`lyma check`: what the blacklist says of a command, without running it."""

from __future__ import annotations

import json
import os
import sys
from argparse import REMAINDER, RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

from lyma_server.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.executor.verdict import Verdict
    from lyma_server.terminal.commands import Subparsers

DESCRIPTION = """\
Say whether the blacklist allows a command here, and if not, which rule forbids it. Nothing is run. Exit code 0 means
allowed, 1 forbidden. No setting changes the answer. What is allowed is still judged as it is executed, and confined: it
may fail, such as by writing outside this folder. `lyma exec` shows that.
"""
EXAMPLES = """\
examples:
  lyma check 'rm -rf build'
  lyma check --jsonl < rows        rows {"command", "cwd", "home"?, "workspace"?, "env"?}, one verdict a line
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma check COMMAND | --jsonl`."""
    parser = subparsers.add_parser(
        "check", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--jsonl", action="store_true", help="judge rows of JSON from stdin, one verdict a line")
    parser.add_argument("command", nargs=REMAINDER, metavar="COMMAND", help="the command, as one word or several")


def run(args: Namespace) -> int:
    """Judge, and return 0 for allow, 1 for block; with `--jsonl` 0 once every row has its verdict."""
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if args.jsonl:
        if words:
            raise UsageError("--jsonl reads the commands from stdin; give no command beside it.")
        return _judge_rows()
    if not any(map(str.strip, words)):
        raise UsageError("Give the command to judge, as in: lyma check 'rm -rf build'.")
    verdict = _judge({"command": " ".join(words), "cwd": os.getcwd(), "env": dict(os.environ)})  # noqa: PTH109 - no Path needed
    if verdict.allowed:
        print("allow")
        return 0
    print(f"block ({verdict.rule}): {verdict.message}")
    return 1


def _judge_rows() -> int:
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        print(json.dumps(_answer(line)), flush=True)
    return 0


def _answer(line: bytes) -> dict[str, str]:
    """The verdict on one row. A row that cannot be read is blocked: every line gets an answer."""
    try:
        row = json.loads(line)
        verdict = _judge(row)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"The row is not an object with a command and a cwd ({type(error).__name__})."
        return {"verdict": "block", "rule": "unreadable", "reason": reason}
    return {"verdict": verdict.verdict, "rule": verdict.rule, "reason": verdict.message}


def _judge(row: dict[str, Any]) -> Verdict:
    """Judge a row. Where it does not say, the home is the user's and the workspace its folder."""
    from lyma_server.config.paths import Home
    from lyma_server.executor.verdict import judge

    home = row.get("home")
    lyma_home = os.path.join(home, ".lyma") if home else str(Home.find(os.environ).root)  # noqa: PTH118 - text, not a path of ours
    home = home or os.environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is none
    cwd = row["cwd"]
    workspace = row.get("workspace")
    if workspace is None:
        workspace = "" if cwd in ("/", home) else cwd
    return judge(row["command"], cwd=cwd, home=home, workspace=workspace, env=row.get("env"), lyma_home=lyma_home)
