"""`lyma schema`: the editor protocol for tools."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma schema [--json|--typescript|--lua|--agent]`."""
    parser = subparsers.add_parser(
        "schema", description="Print the editor protocol: its methods, messages and errors. protocol.md explains it."
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--json", action="store_true", help="as JSON Schema (the default)")
    which.add_argument("--typescript", action="store_true", help="as TypeScript types")
    which.add_argument("--lua", action="store_true", help="as LuaCATS types")
    which.add_argument("--agent", action="store_true", help="instead, what agent.toml accepts, as JSON Schema")


def run(args: Namespace) -> int:
    """Print it."""
    from lyma_server.protocol import render

    if args.agent:
        from lyma_server.factory.spec_schema import render_schema

        text = json.dumps(render_schema(), indent=2, ensure_ascii=False) + "\n"
    elif args.typescript:
        text = render.render_typescript()
    elif args.lua:
        text = render.render_lua()
    else:
        text = json.dumps(render.render_schema(), indent=2, ensure_ascii=False) + "\n"
    sys.stdout.write(text)
    return 0
