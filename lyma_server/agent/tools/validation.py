"""Holds the arguments of a call to the schema of its tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from lyma_server.agent.tools.base import Tool
    from lyma_server.protocol.base import Json

MOST_COMPLAINTS = 3


def complaints(tool: Tool, arguments: dict[str, Json]) -> str:
    """What is wrong with `arguments`, each with its place; empty where they hold."""
    found = sorted(_validator(tool.name, tool).iter_errors(arguments), key=lambda error: list(map(str, error.path)))
    shown = (f"{error.json_path.removeprefix('$.')}: {error.message[:300]}" for error in found[:MOST_COMPLAINTS])
    return "; ".join(shown).replace("$: ", "")


_MADE: dict[str, Validator] = {}


def _validator(name: str, tool: Tool) -> Validator:
    from jsonschema import Draft202012Validator

    if name not in _MADE or _MADE[name].schema is not tool.schema:
        _MADE[name] = Draft202012Validator(tool.schema)
    return _MADE[name]
