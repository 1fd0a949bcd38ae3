"""`lyma status`: what is configured and how it fares."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from lyma_server import __version__
from lyma_server.protocol.base import PROTOCOL_VERSION
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import StatusResult
from lyma_server.router.policy import CLASSES
from lyma_server.terminal.table import table
from lyma_server.terminal.view import json_line

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from lyma_server.compose import Core
    from lyma_server.protocol.messages import KeyStatus, ProviderStatus
    from lyma_server.terminal.commands import Subparsers

MICROS = 1_000_000


def add_parser(subparsers: Subparsers) -> None:
    """`lyma status [--json]`."""
    parser = subparsers.add_parser(
        "status",
        description="Show the providers in the order of fallback, their keys (masked) with what they wait for, and usage.",
    )
    parser.add_argument("--json", action="store_true", help="print the result of lyma/status")


def run(args: Namespace) -> int:
    """Print it. Asks nobody anything over the network."""
    from lyma_server.compose import build_core

    status, cap_micros = asyncio.run(_status(build_core(os.environ)))
    if args.json:
        sys.stdout.write(json_line(unstructure(status)))
        return 0
    sys.stdout.write(report(status, cap_micros))
    return 0


def report(status: StatusResult, cap_micros: int | None) -> str:
    """How things stand, as text for a person."""
    head = ("provider", "model", "breaker", "key", "account", "state", "today")
    rows = table(head, (row for provider in status.providers for row in _rows(provider)))
    return f"Lyma {status.version}, home {status.home}\n\n{rows}\n{_in_all(status.providers, cap_micros)}\n"


def status_of(core: Core) -> tuple[StatusResult, int | None]:
    """How things stand, and the most to spend in a day."""
    status = StatusResult(
        version=__version__,
        protocol=PROTOCOL_VERSION,
        home=str(core.home.root),
        providers=core.provider_status(),
        sandbox=core.sandbox,
    )
    return status, core.loaded.settings.router.daily_cap_micros


async def _status(core: Core) -> tuple[StatusResult, int | None]:
    try:
        return status_of(core)
    finally:
        await core.close()


def _rows(provider: ProviderStatus) -> list[tuple[str, ...]]:
    """A line a key; the first one names the provider."""
    keys = [(key.key, key.account or "-", _state(key)) for key in provider.keys] or [("-", "-", "ready")]
    breaker = provider.breaker.replace("_", "-")
    first, *others = keys
    head = (provider.name, provider.model, breaker, *first, _today(provider))
    return [head, *(("", "", "", *other, "") for other in others)]


def _state(key: KeyStatus) -> str:
    if key.state == "missing":
        return f"missing: {key.reason}"
    if key.until is None:
        return key.state
    row = CLASSES.get(key.reason or "")
    reason = f" ({row.words})" if row else ""
    return f"{key.state} until {_local(key.until)}{reason}"


def _local(moment: str) -> str:
    """A moment as a clock on the wall shows it, with the date where it is not today."""
    there = datetime.fromisoformat(moment).astimezone()
    is_today = there.date() == datetime.now().astimezone().date()
    return f"{there:%H:%M:%S}" if is_today else f"{there:%Y-%m-%d %H:%M}"


def _today(provider: ProviderStatus) -> str:
    if not provider.tokens_today:
        return "-"
    cost = provider.cost_micros_today
    return f"{provider.tokens_today:,} tokens, {'price unknown' if cost is None else _dollars(cost)}"


def _in_all(providers: Sequence[ProviderStatus], cap_micros: int | None) -> str:
    """What the day has cost; a sum with a part that is not known says so."""
    costs = [provider.cost_micros_today for provider in providers]
    known = _dollars(sum(cost for cost in costs if cost is not None))
    spent = f"at least {known}, and more at an unknown price" if None in costs else known
    limit = "no limit (router.daily_cap_micros)" if cap_micros is None else f"at most {_dollars(cap_micros)}"
    return f"today: {spent}; {limit}"


def _dollars(micros: int) -> str:
    return f"${micros / MICROS:.4f}"
