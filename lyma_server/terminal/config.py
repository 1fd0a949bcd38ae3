"""`lyma config`: show, set and find the settings."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from lyma_server.config.paths import Home

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.config.display import Shown
    from lyma_server.config.layers import Source
    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma config show [--json] | set NAME VALUE | path`."""
    parser = subparsers.add_parser(
        "config",
        description="Show, set and find the settings. Precedence: defaults < file < variables < flags.",
        epilog="Examples: lyma config show; lyma config set order anthropic,openai; lyma config set agent.confirm edits. "
        "Keys have a command of their own: lyma keys.",
    )
    actions = parser.add_subparsers(dest="action", metavar="show|set|path", required=True)
    show = actions.add_parser("show", description="Print every setting with where it came from; keys are masked.")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    set_ = actions.add_parser("set", description="Change one value in the file, and not a comment or a line besides.")
    set_.add_argument("name", metavar="NAME", help="such as router.deadline_s or providers.openai.model")
    set_.add_argument("value", metavar="VALUE", help="a list is written with commas, or as in TOML")
    actions.add_parser("path", description="Print where the file is, or would be.")


def run(args: Namespace) -> int:
    """Do what `args.action` says."""
    return {"show": _show, "set": _set, "path": _path}[args.action](args)


def _show(args: Namespace) -> int:
    from lyma_server.config.display import shown_settings
    from lyma_server.config.load import load_settings

    loaded = load_settings(os.environ, Home.find(os.environ))
    shown = list(shown_settings(loaded))
    sys.stdout.write(_as_json(shown) if args.json else _as_table(shown))
    for notice in loaded.notices:
        sys.stderr.write(f"{notice}\n")
    return 0


def _set(args: Namespace) -> int:
    from lyma_server.config.edit import set_value
    from lyma_server.config.environment import variable_of

    home = Home.find(os.environ)
    set_value(home, args.name, args.value, os.environ)
    variable = variable_of(tuple(args.name.split(".")))
    if os.environ.get(variable):
        sys.stderr.write(f"Written to {home.config}; the variable {variable} is set and still wins over it.\n")
    return 0


def _path(_args: Namespace) -> int:
    sys.stdout.write(f"{Home.find(os.environ).config}\n")
    return 0


def _as_json(shown: list[Shown]) -> str:
    rows = {
        row.key: {"value": row.value, "source": row.source.kind, "where": row.source.where or None} for row in shown
    }
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def _as_table(shown: list[Shown]) -> str:
    from lyma_server.terminal.table import table

    rows = [(row.key, "-" if row.value is None else json.dumps(row.value, ensure_ascii=False)) for row in shown]
    sources = [_place(row.source) for row in shown]
    return table(("setting", "value", "from"), [(*row, source) for row, source in zip(rows, sources, strict=True)])


def _place(source: Source) -> str:
    return f"{source.kind} {source.where}".strip()
