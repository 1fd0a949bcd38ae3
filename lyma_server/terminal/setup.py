"""`lyma setup`: pick a provider, paste a key unseen, test it, and store it for yourself alone."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from lyma_server.config.edit import add_key, remove_last_key, set_value
from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from lyma_server.config.presets import EMBEDDED, PRESETS
from lyma_server.errors import UsageError
from lyma_server.terminal.plain import plain_line
from lyma_server.terminal.secret_input import one_key, read_line, read_unseen

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Coroutine

    from lyma_server.config.presets import Preset
    from lyma_server.terminal.commands import Subparsers

    Probe: TypeAlias = Callable[[str], Coroutine[Any, Any, str | None]]

CUSTOM = "local"
"""What a server of the user's own is called, until they rename it."""

YES = {"y", "yes"}
NO = {"n", "no"}


def add_parser(subparsers: Subparsers) -> None:
    """`lyma setup`."""
    subparsers.add_parser(
        "setup",
        description="Pick a provider, paste a key unseen, test it and store it in the configuration, mode 0600.",
        epilog="It needs a terminal. Without one: pipe a key into `lyma keys add PROVIDER`, or set ANTHROPIC_API_KEY, "
        "OPENAI_API_KEY, DEEPSEEK_API_KEY, DASHSCOPE_API_KEY or MOONSHOT_API_KEY.",
    )


def run(_args: Namespace) -> int:
    """Lead a person through it."""
    from lyma_server.terminal.probe import probe

    return set_up(Home.find(os.environ), probe)


def set_up(home: Home, probe: Probe) -> int:
    """Ask, store, test; a key that does not work is taken back if the person says so. Returns 1 if none is left."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`lyma setup` needs a terminal; pipe a key into `lyma keys add PROVIDER` instead, or set ANTHROPIC_API_KEY."
        )
    try:
        name = _choose()
        has_new_key = _configure(home, name)
        chosen = _include_in_order(home, name)
        sys.stdout.write(f"Stored in {home.config}, for you alone (mode 0600). Testing {name} …\n")
        problem = asyncio.run(probe(name))
        keeps = _keeps(problem, has_new_key=has_new_key)
        if not keeps:
            _take_back(home, name, chosen)
    except EOFError:
        raise UsageError("The input ended, so setup stopped here; run `lyma setup` again to go on.") from None
    return 0 if keeps else 1


def _choose() -> str:
    """Let the person pick by number or by name."""
    names = [*(name for name in PRESETS if name != EMBEDDED), CUSTOM]
    sys.stdout.write("Which provider?\n")
    for number, name in enumerate(names, 1):
        preset = PRESETS.get(name)
        sys.stdout.write(f"  {number:2}  {name:10} {_about(preset)}\n")
    while True:
        answer = read_line("Number or name: ").strip().lower()
        if answer in names:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        sys.stdout.write(f"Please type a number from 1 to {len(names)}, or a name.\n")


def _about(preset: Preset | None) -> str:
    if preset is None:
        return "any other server that speaks the OpenAI API"
    return f"{preset.label}, {f'keys: {preset.keys_page}' if preset.keys_page else preset.base_url}"


def _configure(home: Home, name: str) -> bool:
    """Store what the provider needs. Returns whether that was a key."""
    preset = PRESETS.get(name)
    if preset is None or preset.key_variable is None:
        _store_address(home, name, preset.base_url if preset else None)
        return preset is None and _store_key(home, name, " (empty: it needs none)")
    if preset.china_base_url:
        answer = read_line("Was the account made in mainland China? [y/N] ").strip().lower()
        if answer in YES:
            set_value(home, f"providers.{name}.base_url", preset.china_base_url, os.environ)
    return _store_key(home, name, "")


def _store_address(home: Home, name: str, usual: str | None) -> None:
    while True:
        answer = read_line(f"Address [{usual}]: " if usual else "Address, such as http://127.0.0.1:8080/v1: ").strip()
        try:
            set_value(home, f"providers.{name}.base_url", answer or usual or "", os.environ)
        except UsageError as error:
            sys.stdout.write(f"{error.message}\n")
        else:
            return


def _store_key(home: Home, name: str, remark: str) -> bool:
    while True:
        key = read_unseen(f"Key for {name}, not shown{remark}: ")
        if not key.strip() and remark:
            return False
        try:
            add_key(home, name, one_key(key), None, os.environ)
        except UsageError as error:
            sys.stdout.write(f"{error.message}\n")
        else:
            return True


def _include_in_order(home: Home, name: str) -> tuple[str, ...] | None:
    """An order that the person once chose stays theirs; the new provider comes last in it.

    Returns the order as it was before, null if it stays.
    """
    loaded = load_settings(os.environ, home)
    order, source = loaded.settings.order, loaded.sources["order"]
    if name in order or source.kind == "default":
        return None
    if source.kind == "file":
        set_value(home, "order", ",".join((*order, name)), os.environ)
        return order
    sys.stdout.write(f"{source.where} does not name {name}, so it is not asked; add it there.\n")
    return None


def _keeps(problem: str | None, *, has_new_key: bool) -> bool:
    """Say how the test went. Returns whether what was stored stays."""
    if problem is None:
        sys.stdout.write('It works. Ask something: lyma ask "what does this project do?"\n')
        return True
    sys.stdout.write(f"It does not work yet: {plain_line(problem)}\n")
    if not has_new_key or read_line("Keep the key? [Y/n] ").strip().lower() not in NO:
        sys.stdout.write("Kept. `lyma doctor` says what to do when you want to look again.\n")
        return True
    return False


def _take_back(home: Home, name: str, chosen: tuple[str, ...] | None) -> None:
    """Remove the key, and restore the order that the person had chosen before."""
    remove_last_key(home, name, os.environ)
    if chosen is not None:
        set_value(home, "order", ",".join(chosen), os.environ)
    sys.stdout.write("Taken back.\n")
