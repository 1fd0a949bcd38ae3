"""What a tool is, and what it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from lyma_server.protocol.base import Json

if TYPE_CHECKING:
    from lyma_server.agent.bounds import Bounds
    from lyma_server.agent.edits import EditBook
    from lyma_server.agent.ports import Emit, Person, Workspace
    from lyma_server.agent.subagents import Subagents
    from lyma_server.config.model import AgentSettings
    from lyma_server.executor.run import Commands
    from lyma_server.factory.draft import AskModel
    from lyma_server.factory.outcome import Room
    from lyma_server.protocol.events import Usage
    from lyma_server.secret import Redactor


@frozen
class Toolbox:
    """What a call may use. `call` is the id of its item, `new_item` names further items, `emit` tells them.

    `commands` gives what runs the session's commands, null where none may run; `subagents` what drafts, compiles and runs
    agents. `ask_model` makes one model call aside, of instructions and a prompt; `charge` counts what else was used, for which
    there is `room`, where the turn has a limit.
    """

    call: str
    bounds: Bounds
    workspace: Workspace
    person: Person
    settings: AgentSettings
    redactor: Redactor
    edits: EditBook
    emit: Emit
    new_item: Callable[[], str]
    commands: Callable[[], Commands] | None = None
    subagents: Callable[[], Subagents] | None = None
    ask_model: AskModel | None = None
    charge: Callable[[Usage], None] = lambda _usage: None
    room: Callable[[], Room | None] = lambda: None


Run: TypeAlias = Callable[[dict[str, Json], Toolbox], Awaitable[str]]
"""Does what the arguments say, which hold to the schema, and returns what the model is told. Raises ToolError, EditConflict."""


@frozen
class Tool:
    """A row of the registry. `schema` is the JSON Schema of the arguments."""

    name: str
    description: str
    schema: dict[str, Json]
    run: Run


def arguments(required: dict[str, Json], optional: dict[str, Json] | None = None) -> dict[str, Json]:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str) -> dict[str, Json]:
    return {"type": "string", "description": description}


def count(description: str, least: int = 1) -> dict[str, Json]:
    return {"type": "integer", "minimum": least, "description": description}
