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

    kind: Literal["text"] = "text"
    id: str
    text: str = ""


@message
class ThinkingItem:
    """What the model thought aloud."""

    kind: Literal["thinking"] = "thinking"
    id: str
    text: str = ""


@message
class ToolCallItem:
    """A tool that the model asks for; `arguments` are empty until the item is complete."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Json] = attrs.field(factory=dict)


@message
class ToolResultItem:
    """What a tool answered to the call `call`; `text` is what the model is told."""

    kind: Literal["tool_result"] = "tool_result"
    id: str
    call: str
    text: str = ""
    is_error: bool = False


@message
class CommandOutputItem:
    """The output of a command while and after it runs; `exit_status` is absent until it ends."""

    kind: Literal["command_output"] = "command_output"
    id: str
    call: str
    command: str
    text: str = ""
    exit_status: int | None = None


@message
class EditItem:
    """A change to one file; `diff` is unified, `applied` tells whether it was made."""

    kind: Literal["edit"] = "edit"
    id: str
    call: str
    path: str
    uri: str
    diff: str = ""
    applied: bool = False


@message
class RunItem:
    """A run of a compiled agent; `path` names the runs above it, root first."""

    kind: Literal["run"] = "run"
    id: str
    run: str
    hash: str
    name: str
    path: tuple[str, ...] = ()
    status: str | None = None
    text: str = ""


Item: TypeAlias = TextItem | ThinkingItem | ToolCallItem | ToolResultItem | CommandOutputItem | EditItem | RunItem
