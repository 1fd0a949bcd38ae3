"""`lyma keys`: list, add, remove and wake keys."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS
from typing import TYPE_CHECKING

from lyma_server.config.paths import Home
from lyma_server.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from lyma_server.config.load import Loaded
    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma keys list | add PROVIDER [--account NAME] | remove PROVIDER NUMBER | wake [PROVIDER]`."""
    parser = subparsers.add_parser(
        "keys",
        description="List, add, remove and wake keys. A key is read unseen from the terminal, or from stdin; never from the "
        "command line, which other programs can read.",
        epilog="Examples: lyma keys add anthropic; pass show openai | lyma keys add openai --account work; "
        "echo env:OPENAI_API_KEY | lyma keys add openai; lyma keys remove openai 2.",
    )
    actions = parser.add_subparsers(dest="action", metavar="list|add|remove|wake", required=True)
    actions.add_parser("list", description="List the keys of each provider, masked, with where each comes from.")
    add = actions.add_parser("add", description="Add a key: itself, env:NAME, or cmd:COMMAND (its output is the key).")
    add.add_argument("provider", metavar="PROVIDER", help="such as anthropic")
    add.add_argument("key", nargs="?", help=SUPPRESS)
    add.add_argument("--account", metavar="NAME", help="keys of one account share its limits")
    remove = actions.add_parser("remove", description="Remove a key by its number in `lyma keys list`.")
    remove.add_argument("provider", metavar="PROVIDER")
    remove.add_argument("number", metavar="NUMBER", type=int)
    wake = actions.add_parser(
        "wake",
        description="Ask keys again that were put aside, as after a refused key or one without credit, when you have mended it.",
    )
    wake.add_argument("provider", metavar="PROVIDER", nargs="?", help="only the keys of this one")


def run(args: Namespace) -> int:
    """Do what `args.action` says."""
    return {"list": _list, "add": _add, "remove": _remove, "wake": _wake}[args.action](args)


def _list(_args: Namespace) -> int:
    from lyma_server.config.load import load_settings
    from lyma_server.terminal.table import table

    rows = list(_rows(load_settings(os.environ, Home.find(os.environ))))
    if rows:
        sys.stdout.write(table(("provider", "number", "key", "account", "from"), rows))
    else:
        sys.stdout.write("There are no keys; `lyma keys add PROVIDER` adds one, `lyma setup` helps to choose.\n")
    return 0


def _rows(loaded: Loaded) -> Iterator[tuple[str, str, str, str, str]]:
    from lyma_server.config.keys import describe

    for name, provider in loaded.settings.providers.items():
        source = loaded.sources[f"providers.{name}.keys"]
        for number, key in enumerate(provider.keys, 1):
            place = source.where if source.kind == "file" else source.kind
            shown = describe(key)
            yield name, str(number), shown + _unset(shown), key.account or "-", place


def _unset(name: str) -> str:
    kind, _, variable = name.partition(":")
    return " (not set)" if kind == "env" and not os.environ.get(variable) else ""


def _add(args: Namespace) -> int:
    from lyma_server.config.edit import add_key
    from lyma_server.terminal.secret_input import read_key

    if args.key is not None:
        raise UsageError(
            "A key on the command line can be read by other programs and stays in the shell's history; "
            f"run `lyma keys add {args.provider}` and paste it there, or pipe it in. Nothing was changed."
        )
    home = Home.find(os.environ)
    add_key(home, args.provider, read_key(f"Key for {args.provider} (not shown): "), args.account, os.environ)
    sys.stdout.write(f"Added a key for {args.provider} to {home.config}.\n")
    _warn_of_variable(args.provider)
    _warn_of_order(home, args.provider)
    return 0


def _remove(args: Namespace) -> int:
    from lyma_server.config.edit import remove_key

    home = Home.find(os.environ)
    remove_key(home, args.provider, args.number, os.environ)
    sys.stdout.write(f"Removed key {args.number} of {args.provider} from {home.config}.\n")
    _warn_of_variable(args.provider)
    return 0


def _wake(args: Namespace) -> int:
    from lyma_server.config.load import load_settings
    from lyma_server.router.database import Database
    from lyma_server.router.state import State

    home = Home.find(os.environ)
    home.ensure()
    configured = load_settings(os.environ, home).settings.providers
    if args.provider not in {None, *configured}:
        raise UsageError(f"There is no provider {args.provider[:80]}; there are {', '.join(configured) or 'none'}.")
    state = State(Database(home.state_db))
    held = sorted(state.held_providers() & ({args.provider} if args.provider else set(configured)))
    for name in held:
        state.forget(name)
    state.database.close()
    if notices := state.database.take_notices():
        raise ConfigError(" ".join(notices))
    sys.stdout.write(f"Asked again from now on: {', '.join(held)}.\n" if held else "No key had been put aside.\n")
    return 0


def _warn_of_variable(provider: str) -> None:
    from lyma_server.config.environment import variable_of

    variable = variable_of(("providers", provider, "keys"))
    if os.environ.get(variable):
        sys.stderr.write(f"The variable {variable} is set and wins over the keys in the file.\n")


def _warn_of_order(home: Home, provider: str) -> None:
    """An order that the person chose stays theirs, but a key of a provider that it leaves out would lie idle unseen."""
    from lyma_server.config.load import load_settings

    try:
        loaded = load_settings(os.environ, home)
    except ConfigError:  # another command says what was wrong with the file before
        return
    order, source = loaded.settings.order, loaded.sources["order"]
    if provider in order or source.kind == "default":
        return
    if source.kind == "file":
        adding = f"`lyma config set order {','.join((*order, provider))}` adds it"
    else:
        adding = f"add it to {source.where}"
    sys.stderr.write(f"Your order ({', '.join(order)}) leaves {provider} out; {adding}.\n")
