"""The tools of the main agent: a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.agent.tools.agents import COMPILE_AGENT, DRAFT_AGENT, RUN_COMPILED_AGENT
from lyma_server.agent.tools.changing import DELETE_FILE, EDIT_FILE, WRITE_FILE
from lyma_server.agent.tools.commands import LIST_COMMANDS, RUN_COMMAND, STOP_COMMAND
from lyma_server.agent.tools.reading import READ_FILE
from lyma_server.agent.tools.searching import LIST_FILES, SEARCH
from lyma_server.router.chat import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.agent.tools.base import Tool

TOOLS: tuple[Tool, ...] = (READ_FILE, LIST_FILES, SEARCH, EDIT_FILE, WRITE_FILE, DELETE_FILE)
COMMAND_TOOLS: tuple[Tool, ...] = (RUN_COMMAND, LIST_COMMANDS, STOP_COMMAND)
AGENT_TOOLS: tuple[Tool, ...] = (DRAFT_AGENT, COMPILE_AGENT, RUN_COMPILED_AGENT)


def specifications(tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    """What the model is told of them."""
    return tuple(ToolSpec(tool.name, tool.description, tool.schema) for tool in tools)
