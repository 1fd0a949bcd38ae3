"""The items of a turn: what the model and its tools produced, each whole.

An item is sent when it starts (perhaps empty), grows by deltas, and is sent once more, whole, when it is complete. The
complete one is authoritative.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from lyma_server.protocol.base import Json, message


@message
class TextItem:
    """Text of the answer, Markdown."""

    id: str
    kind: Literal["text"] = "text"
    text: str = ""


@message
class ThinkingItem:
    """What the model thought aloud."""

    id: str
    kind: Literal["thinking"] = "thinking"
    text: str = ""


@message
class ToolCallItem:
    """A tool that the model asks for; `arguments` are empty until the item is complete."""

    id: str
    name: str
    kind: Literal["tool_call"] = "tool_call"
    arguments: dict[str, Json] = attrs.field(factory=dict)


@message
class ToolResultItem:
    """What a tool answered to the call `call`; `text` is what the model is told."""

    id: str
    call: str
    kind: Literal["tool_result"] = "tool_result"
    text: str = ""
    is_error: bool = False


@message
class CommandOutputItem:
    """The output of a command while and after it runs; `exit_status` is null until it ends."""

    id: str
    call: str
    command: str
    kind: Literal["command_output"] = "command_output"
    text: str = ""
    exit_status: int | None = None


@message
class EditItem:
    """A change to one file; `diff` is unified, `applied` tells whether it was made."""

    id: str
    call: str
    path: str
    uri: str
    kind: Literal["edit"] = "edit"
    diff: str = ""
    applied: bool = False


@message
class RunItem:
    """A run of a compiled agent; `path` names the runs above it, root first."""

    id: str
    run: str
    hash: str
    name: str
    kind: Literal["run"] = "run"
    path: tuple[str, ...] = ()
    status: str | None = None
    text: str = ""


Item: TypeAlias = TextItem | ThinkingItem | ToolCallItem | ToolResultItem | CommandOutputItem | EditItem | RunItem
