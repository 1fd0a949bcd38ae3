"""`lyma run-compiled-agent`: an agent at work, by its hash, once it is approved."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

from lyma_server.agent.texts import map_texts
from lyma_server.errors import LymaError
from lyma_server.terminal.agents import own_workspace

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from lyma_server.agent.runs import Report, Wanted
    from lyma_server.compose import Core
    from lyma_server.protocol.base import Json
    from lyma_server.terminal.commands import Subparsers

CANCELLED, NOT_APPROVED = 130, 3
APPROVALS = frozenset(
    {"approval_required", "approval_unavailable", "approval_denied", "approval_expired", "hash_mismatch"}
)

DESCRIPTION = """\
Run a compiled agent in its sandbox, in this folder. Its progress goes to stderr, its output to stdout. If it is not approved
yet, you are shown all of it and asked, at a terminal. Its changes are shown and made after a yes, and can be undone.
"""
EXAMPLES = """\
examples:
  lyma run-compiled-agent sha256:3f9a12 --input '{"since": "v1.0"}'
  git log v1.0.. | lyma run-compiled-agent sha256:3f9a12 --input - --apply
  lyma ask --continue "explain what it found"

An input that is no JSON is handed over as text. Exit code 3: it is not approved.
"""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma run-compiled-agent HASH [--input JSON|-] [--apply] [--json]`."""
    parser = subparsers.add_parser(
        "run-compiled-agent", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("hash", metavar="HASH", help="the hash, or its beginning; lyma agents lists them")
    parser.add_argument("--input", metavar="JSON|-", help="what to hand to it; - reads stdin")
    parser.add_argument("--apply", action="store_true", help="make its changes without asking")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON, and not only the output")


def run(args: Namespace) -> int:
    """Run it and return the exit code."""
    from lyma_server.compose import build_core

    workspace = own_workspace()
    given = sys.stdin.buffer.read().decode(errors="replace") if args.input == "-" else args.input
    return asyncio.run(_run(args, build_core(os.environ), workspace, input_of(given)))


def input_of(text: str | None) -> Json:
    """What is handed to the agent: JSON, or else the text as it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


async def _run(args: Namespace, core: Core, workspace: Path, given: Json) -> int:
    from lyma_server.agent.runs import Wanted

    try:
        hash_ = core.factory.store.find(args.hash)
        wanted = Wanted(hash_, given, "yes" if args.apply else "ask")
        report = await _reported(core, wanted, workspace)
    except LymaError as error:
        error.message = core.redactor.redact(error.message)
        raise
    finally:
        await core.close()
    if report is None:
        return CANCELLED
    _tell(map_texts(as_json(report), core.redactor.redact), core, whole=args.json)
    return exit_code(report)


async def _reported(core: Core, wanted: Wanted, workspace: Path) -> Report | None:
    """Run with its progress told, and a signal that stops it. Null where it was stopped before it could say how it ended."""
    from lyma_server.agent.disk import DiskWorkspace
    from lyma_server.terminal.person import TerminalPerson
    from lyma_server.terminal.plain import styled
    from lyma_server.terminal.printer import Printer
    from lyma_server.terminal.run_view import RunView
    from lyma_server.terminal.stop import Stop

    stop = Stop(asyncio.get_running_loop())
    with stop.on_signals():
        printer = Printer(RunView(), dim_notes=styled(sys.stderr), lost=stop.from_thread)
        try:
            run = core.start_run(wanted, DiskWorkspace(workspace), TerminalPerson(printer.flushed), printer.feed)
            stop.when_asked(run.turn.cancel)
            return (await run.report())[1]
        finally:
            await asyncio.to_thread(printer.close)


def as_json(report: Report) -> dict[str, Any]:
    """The result, and which of its changes were made."""
    left = {each.path: each.reason for each in report.left}
    return {**report.result.to_json(), "applied": list(report.made), "left": left}


def exit_code(report: Report) -> int:
    """0 for a run that ended well."""
    result = report.result
    if result.status == "cancelled":
        return CANCELLED
    if result.status == "refused" and result.error is not None and result.error.kind in APPROVALS:
        return NOT_APPROVED
    return 0 if result.status == "ok" else 1


def _tell(result: dict[str, Any], core: Core, *, whole: bool) -> None:
    from lyma_server.terminal.plain import plain

    if whole:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    elif result["status"] == "ok":
        text = text_of(result["output"])
        sys.stdout.write(plain(text) if sys.stdout.isatty() else text)
    for line in _remarks(result, core):
        sys.stderr.write(f"{plain(line)}\n")


def text_of(output: Json) -> str:
    """A text as itself, all else as JSON."""
    if isinstance(output, dict) and list(output) == ["text"] and isinstance(output["text"], str):
        return output["text"].rstrip("\n") + "\n"
    return json.dumps(output, ensure_ascii=False, indent=2) + "\n"


def _remarks(result: dict[str, Any], core: Core) -> list[str]:
    """What is said beside the output."""
    lines = [f"Not changed: {path}: {reason}" for path, reason in result["left"].items()]
    if result["left"] and result["patch"]:
        lines.append(f"All its changes are in {core.home.root / result['patch']} (see `git apply`).")
    if result["applied"]:
        lines.append(f"Changed: {', '.join(result['applied'])}. `lyma undo` takes it back.")
    if result["status"] != "ok":
        reason = result["error"]["message"] if result["error"] else "it has no result."
        lines.append(f"The run ended: {result['status']}: {reason}")
    return lines
