"""`lyma agents`: the compiled agents, and how each stands in this folder. Also what the other commands of agents share."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.config.paths import Home
from lyma_server.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.factory.factory import Factory, Row
    from lyma_server.terminal.commands import Subparsers

SHORT = 18
"""Characters of a hash in a list: `sha256:` and 11 digits."""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma agents [--json]`."""
    parser = subparsers.add_parser(
        "agents",
        description="List the compiled agents, and whether each is approved for this folder.",
        epilog="An agent is drafted (lyma draft-agent), compiled (lyma compile-agent), approved by you (lyma approve) and run.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, with the hashes in full")


def run(args: Namespace) -> int:
    """Print them."""
    rows = open_factory().rows(Path.cwd())
    if args.json:
        sys.stdout.write("".join(json.dumps(_as_json(row), ensure_ascii=False) + "\n" for row in rows))
    elif rows:
        from lyma_server.terminal.table import table

        lines = [(row.name or "-", row.hash[:SHORT], row.standing, row.purpose) for row in rows]
        sys.stdout.write(table(("agent", "hash", "here", "purpose"), lines))
    else:
        sys.stdout.write("There are no compiled agents; begin with `lyma draft-agent --from-template NAME`.\n")
    return 0


def open_factory() -> Factory:
    """The factory of this user's home, with the settings as they are."""
    from lyma_server.config.load import load_settings
    from lyma_server.factory.factory import Factory

    home = Home.find(os.environ)
    home.ensure()
    return Factory(home, load_settings(os.environ, home).settings.factory.ceiling)


def is_external() -> bool:
    """Whether the settings leave drafting and compiling to an external factory."""
    from lyma_server.config.load import load_settings

    home = Home.find(os.environ)
    home.ensure()
    return load_settings(os.environ, home).settings.factory.mode == "external"


def own_workspace() -> Path:
    """The folder that agents are drafted and approved for. Raises UsageError where that is /, a home or Lyma's own folder:
    an agent would reach too much there, and could not run.
    """
    from lyma_server.agent.bounds import real_path, user_homes, workspace_refusal

    folder = real_path(Path.cwd())
    if workspace_refusal(folder, real_path(Home.find(os.environ).root), user_homes()) is not None:
        raise UsageError(f"Agents do not work in {folder}; start this in the folder of a project.")
    return folder


def agent_folder(named: str | None, workspace: Path) -> Path:
    """The folder of the agent that a person names: by name, by folder or by file; or the only one in `workspace`."""
    agents = workspace / ".lyma" / "agents"
    if named is None:
        found = sorted(path.parent for path in agents.glob("*/agent.toml"))
        if not found:
            raise UsageError(f"There is no agent in {agents}; begin with `lyma draft-agent --from-template NAME`.")
        if len(found) != 1:
            listed = ", ".join(folder.name for folder in found[:9])
            raise UsageError(f"Name the agent to compile; in {agents} there are: {listed}.")
        return found[0]
    path = Path(named)
    if path.name == "agent.toml":
        return path.parent
    return path if "/" in named or path.is_dir() else agents / named


def _as_json(row: Row) -> dict[str, str]:
    return {"name": row.name, "hash": row.hash, "here": row.standing, "purpose": row.purpose}
