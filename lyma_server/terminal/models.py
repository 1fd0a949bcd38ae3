"""`lyma models`: what the providers offer."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from lyma_server.errors import ProviderError
from lyma_server.protocol.convert import unstructure
from lyma_server.terminal.plain import plain_line
from lyma_server.terminal.table import table
from lyma_server.terminal.view import json_line

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.compose import Core
    from lyma_server.protocol.messages import ModelInfo, ModelsResult
    from lyma_server.terminal.commands import Subparsers

MICROS = 1_000_000
LONGEST_LINE = 500


def add_parser(subparsers: Subparsers) -> None:
    """`lyma models [PROVIDER] [--json]`."""
    parser = subparsers.add_parser(
        "models",
        description="List the models that your providers offer, with window and price where they are known.",
        epilog="Choose one with `lyma config set providers.NAME.model MODEL`, or for once with `lyma ask --model MODEL`.",
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="only this one")
    parser.add_argument("--json", action="store_true", help="print the result of lyma/models")


def run(args: Namespace) -> int:
    """List them; a provider that cannot be asked is a line on stderr, and an error only if none can."""
    from lyma_server.compose import build_core

    result = asyncio.run(_models(build_core(os.environ), args.provider))
    if args.json:
        sys.stdout.write(json_line(unstructure(result)))
    elif result.models:
        sys.stdout.write(table(("provider", "model", "window", "price in/out per million"), map(_row, result.models)))
    for failure in result.failures:
        sys.stderr.write(f"{plain_line(failure.message, LONGEST_LINE)}\n")
    return 0 if result.models else ProviderError.exit_code


async def _models(core: Core, provider: str | None) -> ModelsResult:
    try:
        return await core.models(provider)
    finally:
        await core.close()


def _row(model: ModelInfo) -> tuple[str, str, str, str]:
    window = f"{model.context_tokens:,}" if model.context_tokens else "-"
    return model.provider, model.id, window, _price(model)


def _price(model: ModelInfo) -> str:
    if model.input_micros is None or model.output_micros is None:
        return "-"
    return f"${model.input_micros / MICROS:g} / ${model.output_micros / MICROS:g}"
