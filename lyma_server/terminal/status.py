"""`lyma status`: what is configured and how it fares."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from lyma_server import __version__
from lyma_server.protocol.base import PROTOCOL_VERSION
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import StatusResult
from lyma_server.terminal.table import table
from lyma_server.terminal.view import json_line

if TYPE_CHECKING:
    from argparse import Namespace

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
    status = asyncio.run(_status())
    if args.json:
        sys.stdout.write(json_line(unstructure(status)))
        return 0
    sys.stdout.write(f"Lyma {status.version}, home {status.home}\n\n")
    head = ("provider", "model", "key", "state", "today")
    sys.stdout.write(table(head, (row for provider in status.providers for row in _rows(provider))))
    return 0


async def _status() -> StatusResult:
    from lyma_server.compose import build_core

    core = build_core(os.environ)
    try:
        return StatusResult(
            version=__version__,
            protocol=PROTOCOL_VERSION,
            home=str(core.home.root),
            providers=core.provider_status(),
            sandbox=core.sandbox,
        )
    finally:
        await core.close()


def _rows(provider: ProviderStatus) -> list[tuple[str, ...]]:
    """A line a key; the first one names the provider."""
    keys = [(key.key or "-", _state(key)) for key in provider.keys] or [("-", "needs none")]
    (first_key, first_state), *others = keys
    if provider.breaker != "closed":
        first_state += f", paused ({provider.breaker.replace('_', ' ')})"
    head = (provider.name, provider.model, first_key, first_state, _today(provider))
    return [head, *(("", "", key, state, "") for key, state in others)]


def _state(key: KeyStatus) -> str:
    parts: list[str] = [key.state]
    if key.reason:
        parts.append(f"({key.reason})")
    if key.until:
        parts.append(f"until {key.until}")
    return " ".join(parts)


def _today(provider: ProviderStatus) -> str:
    if not provider.tokens_today:
        return "-"
    cost = provider.cost_micros_today
    return f"{provider.tokens_today:,} tokens, {'price unknown' if cost is None else f'${cost / MICROS:.4f}'}"
