"""What the model is told of the tools of an agent: Lyma's own, which the runner carries out, and the agent's.

Providers take no dot in a name, so `fs.read` is `fs-read` for the model; an agent's own names hold no hyphen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from lyma_server.factory.bundle import tools_of
from lyma_server.router.chat import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.factory.bundle import Bundle
    from lyma_server.protocol.base import Json

DELEGATE: Final = "agent.run"
"""The tool that runs another agent, offered where the manifest names some."""


@frozen
class Tool:
    """`name` is what the runner calls it; `schema` that of its arguments."""

    name: str
    description: str
    schema: dict[str, Json] = field(repr=False)

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        return ToolSpec(wire_name(self.name), self.description, self.schema)


def _arguments(required: tuple[str, ...], **properties: dict[str, Json]) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(description: str) -> dict[str, Json]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Json]:
    return {"type": "integer", "minimum": 1, "description": description}


BUILTIN: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "fs.list",
            "List the files that you may read, or those that a glob names.",
            _arguments((), glob=_text("Such as src/**/*.py; ** stands for any number of folders.")),
        ),
        Tool(
            "fs.read",
            "Read a text file, with the number of each line.",
            _arguments(
                ("path",),
                path=_text("Relative to the project, such as src/main.py."),
                first=_number("The first line, from 1."),
                last=_number("The last line."),
            ),
        ),
        Tool(
            "fs.grep",
            "Find a regular expression in the files that you may read.",
            _arguments(
                ("pattern",), pattern=_text("In Python's syntax."), glob=_text("Look only into files that it names.")
            ),
        ),
        Tool(
            "fs.write",
            "Write a whole text file. What it was before is replaced.",
            _arguments(("path", "text"), path=_text("Relative to the project."), text=_text("The whole new text.")),
        ),
    )
}


def tools_for(bundle: Bundle) -> tuple[Tool, ...]:
    """All tools of an agent."""
    spec = bundle.facts["spec"]
    own = [_own(bundle, tool) for tool in tools_of(bundle.facts)]
    delegation = [_delegation(bundle.delegates)] if bundle.delegates else []
    return (*(BUILTIN[name] for name in spec["tools"]["allow"]), *own, *delegation)


def wire_name(name: str) -> str:
    """What the model calls a tool."""
    return name.replace(".", "-")


def _own(bundle: Bundle, tool: Mapping[str, Any]) -> Tool:
    schema = json.loads(bundle.text(tool["schema"]))
    return Tool(tool["name"], str(schema.get("description", tool["name"])), schema)


def _delegation(hashes: tuple[str, ...]) -> Tool:
    schema = _arguments(
        ("hash", "input"), hash={"type": "string", "enum": list(hashes)}, input={"description": "Any JSON."}
    )
    return Tool(DELEGATE, "Run another agent and wait for its result.", schema)
