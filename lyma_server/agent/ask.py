"""What one turn works with, and what it has produced so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from lyma_server.agent.limits import added
from lyma_server.agent.texts import map_texts, whole
from lyma_server.protocol.events import Route, Usage, UsageReported
from lyma_server.protocol.messages import AskResult
from lyma_server.router.chat import Message, Thinking

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.assembly import Assembler
    from lyma_server.agent.bounds import Bounds
    from lyma_server.agent.edits import EditBook
    from lyma_server.agent.events import EventStream
    from lyma_server.agent.limits import Limits
    from lyma_server.agent.ports import ChatRouter, Person, Workspace
    from lyma_server.agent.sessionlog import SessionLog
    from lyma_server.agent.subagents import Subagents
    from lyma_server.agent.tools.base import Tool
    from lyma_server.config.model import AgentSettings
    from lyma_server.executor.run import Commands
    from lyma_server.protocol.events import Attempt, StopReason
    from lyma_server.protocol.messages import AskParams
    from lyma_server.router.chat import ChatRequest, ToolCall
    from lyma_server.secret import Redactor


@define
class Ask:
    """The parts of one turn. `refusal` says why there are no tools, where a person should know; `in_project` whether the
    root is a folder to look around in.
    """

    session: str
    turn: str
    params: AskParams
    settings: AgentSettings
    limits: Limits
    bounds: Bounds
    tools: tuple[Tool, ...]
    refusal: str | None
    in_project: bool
    router: ChatRouter
    workspace: Workspace
    person: Person
    redactor: Redactor
    events: EventStream
    log: SessionLog
    edits: EditBook
    new_item: Callable[[], str]
    commands: Callable[[], Commands] | None = None
    subagents: Callable[[], Subagents] | None = None

    instructions: str = ""
    messages: list[Message] = field(factory=list)
    earlier: int = 0
    """How many of the messages are of earlier turns."""
    texts: list[str] = field(factory=list)
    route: list[Attempt] = field(factory=list)
    usage: Usage | None = None
    steps: int = 0
    malformed: int = 0
    request: ChatRequest | None = None
    assembler: Assembler | None = None
    waiting: list[ToolCall] = field(factory=list)
    """Calls of the last answer that have no result yet; with `running`, the item that the first of them has."""
    running: str | None = None

    def say(self, message: Message) -> Message:
        """Add to the conversation, without secrets, and keep it; what was added."""
        message = redacted(message, self.redactor)
        if message.blocks:
            self.messages.append(message)
            self.log.keep_message(message)
        return message

    def charge(self, usage: Usage) -> None:
        """Count what was used beside the turn's own model calls, and tell it."""
        self.usage = added(self.usage, usage)
        self.events.emit(UsageReported(usage=self.usage))

    def tell_route(self, attempt: Attempt) -> None:
        """One attempt of a model call, as an event and for the result."""
        self.route.append(attempt)
        route = Route(
            provider=attempt.provider,
            model=attempt.model,
            class_=attempt.class_,
            next=attempt.next,
            ms=attempt.ms,
            key=attempt.key,
            status=attempt.status,
            retry_after_ms=attempt.retry_after_ms,
        )
        self.events.emit(route)

    def result(self, stop: StopReason) -> AskResult:
        result = AskResult(
            session=self.session,
            turn=self.turn,
            stop_reason=stop,
            text="\n\n".join(self.texts),
            edits=self.edits.summaries(),
            usage=self.usage or Usage(cost_micros=0),
            route=tuple(self.route),
        )
        return map_texts(result, self.redactor.redact)


def redacted(message: Message, redactor: Redactor) -> Message:
    """`message` without secrets, as text that can be encoded. Signed thinking that this changes is dropped: its signature
    no longer holds.
    """
    blocks = []
    for before in message.blocks:
        after = map_texts(before, lambda text: redactor.redact(whole(text)))
        if not (isinstance(before, Thinking) and before.signature and after is not before):
            blocks.append(after)
    return Message(message.role, tuple(blocks), message.origin)
