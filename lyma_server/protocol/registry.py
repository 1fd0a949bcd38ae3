"""Lyma's own methods, a row each. LSP's methods are LSP's business."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from lyma_server.protocol.agents import (
    ApproveParams,
    ApproveResult,
    RequestApprovalParams,
    RequestApprovalResult,
    SubagentParams,
    SubagentResult,
)
from lyma_server.protocol.events import Event
from lyma_server.protocol.messages import (
    AskParams,
    AskResult,
    ModelsParams,
    ModelsResult,
    SessionsParams,
    SessionsResult,
    StatusParams,
    StatusResult,
)

Sender: TypeAlias = Literal["client", "server"]


@frozen
class Method:
    """A method: who sends it, what it carries, and what comes back (None for a notification)."""

    name: str
    sender: Sender
    params: type
    result: type | None
    doc: str

    @property
    def kind(self) -> Literal["request", "notification"]:
        """A request is answered exactly once."""
        return "notification" if self.result is None else "request"


METHODS: tuple[Method, ...] = (
    Method("lyma/ask", "client", AskParams, AskResult, "Ask; the answer streams as events and is repeated whole."),
    Method("lyma/approve", "client", ApproveParams, ApproveResult, "List, show, ask for, answer or revoke approvals."),
    Method(
        "lyma/subagent", "client", SubagentParams, SubagentResult, "Draft, compile, run, stop, list or show agents."
    ),
    Method("lyma/models", "client", ModelsParams, ModelsResult, "List the models that the providers offer."),
    Method(
        "lyma/sessions",
        "client",
        SessionsParams,
        SessionsResult,
        "List, replay, copy or remove conversations; undo or show what a turn changed.",
    ),
    Method("lyma/status", "client", StatusParams, StatusResult, "Say what is configured and how it fares."),
    Method("lyma/event", "server", Event, None, "Something happened in a turn."),
    Method(
        "lyma/requestApproval",
        "server",
        RequestApprovalParams,
        RequestApprovalResult,
        "Ask the person whether an agent may run.",
    ),
)

METHOD_BY_NAME = {method.name: method for method in METHODS}
