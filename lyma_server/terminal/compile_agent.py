"""`lyma compile-agent`: from an agent.toml to a hash that can be approved."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.terminal.agents import agent_folder, is_external, open_factory, own_workspace
from lyma_server.terminal.plain import plain_line

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.factory.compile import Examined
    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma compile-agent [AGENT] [--json]`."""
    parser = subparsers.add_parser(
        "compile-agent",
        description="Check an agent and compile it. Its hash stands for every byte of it; it runs only once you approve that.",
        epilog="Examples: lyma compile-agent; lyma compile-agent changelog-writer; lyma compile-agent path/to/agent.toml.",
    )
    parser.add_argument(
        "agent",
        metavar="AGENT",
        nargs="?",
        help="a name in .lyma/agents, a folder or an agent.toml; the only one if left out",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> int:
    """Print the hash, or what stands against it."""
    folder = agent_folder(args.agent, Path.cwd())
    examined = asyncio.run(_externally(folder)) if is_external() else open_factory().compile(folder)
    if args.json:
        sys.stdout.write(json.dumps(_as_json(examined), ensure_ascii=False) + "\n")
    elif examined.bundle is not None:
        sys.stdout.write(f"{examined.bundle.hash}\n")
        if sys.stderr.isatty() and open_factory().standing(examined.bundle.hash, Path.cwd()) != "approved":
            sys.stderr.write(f"To let it run in this folder: lyma approve {examined.bundle.hash[:19]}\n")
    for diagnostic in () if args.json else examined.diagnostics:
        hint, place = plain_line(diagnostic.hint), plain_line(os.path.relpath(folder / diagnostic.place))
        sys.stderr.write(f"{place}: {plain_line(diagnostic.message)} Hint: {hint}. [{diagnostic.code}]\n")
    return 0 if examined.bundle is not None else 1


async def _externally(folder: Path) -> Examined:
    """Let the external factory compile it. Raises ApprovalRequired where that is not approved here."""
    from lyma_server.compose import build_core
    from lyma_server.factory.reader import read_text

    core = build_core(os.environ)
    try:
        if core.external is None:
            return core.factory.compile(folder)
        return await core.external.compile(read_text(folder), own_workspace(), lambda _event: None)
    finally:
        await core.close()


def _as_json(examined: Examined) -> dict[str, object]:
    from lyma_server.factory.diagnostic import as_json

    found = [as_json(each) for each in examined.diagnostics]
    return {"hash": examined.bundle.hash if examined.bundle else None, "diagnostics": found}
