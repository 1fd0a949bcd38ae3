"""`lyma agents`: the compiled agents, how each stands in this folder, and their removal.

Also what the other commands of agents share.
"""

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
    """`lyma agents [--json] | remove HASH …`."""
    parser = subparsers.add_parser(
        "agents",
        description="List the compiled agents, and whether each is approved for this folder; or remove some.",
        epilog="An agent is drafted (lyma draft-agent), compiled (lyma compile-agent), approved by you (lyma approve) and run.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, with the hashes in full")
    actions = parser.add_subparsers(dest="action", metavar="remove")
    remove = actions.add_parser(
        "remove",
        description="Remove compiled agents, and take their approvals back. What was written in a project, and what runs "
        "left behind, stays. One that runs just now is not removed.",
    )
    remove.add_argument("hashes", metavar="HASH", nargs="+", help="the hash, or its beginning")


def run(args: Namespace) -> int:
    """Print them, or remove some."""
    return _remove(args.hashes) if args.action == "remove" else _list(args)


def _remove(named: list[str]) -> int:
    factory = open_factory()
    for hash_ in dict.fromkeys([factory.store.find(each) for each in named]):
        count = factory.remove(hash_)
        approvals = {0: "it was not approved", 1: "1 approval was taken back"}
        sys.stdout.write(f"Removed {hash_} ({approvals.get(count, f'{count} approvals were taken back')}).\n")
    return 0


def _list(args: Namespace) -> int:
    rows = open_factory().rows(Path.cwd())
    if args.json:
        sys.stdout.write("".join(json.dumps(_as_json(row), ensure_ascii=False) + "\n" for row in rows))
    elif rows:
        from lyma_server.terminal.table import table, terminal_columns

        lines = [(row.name or "-", row.hash[:SHORT], row.standing, row.purpose) for row in rows]
        sys.stdout.write(table(("agent", "hash", "here", "purpose"), lines, terminal_columns()))
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
