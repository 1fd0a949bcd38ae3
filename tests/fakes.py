"""Hand-written stand-ins for what the agent meets: a router, a workspace, a person and a listener."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from attrs import define, field

from lyma_server.agent.agent import Agent
from lyma_server.agent.ports import (
    ApprovalReply,
    ApprovalRequest,
    FileChange,
    FileMissing,
    FileText,
    OnAttempt,
    Question,
)
from lyma_server.agent.session import SessionStore
from lyma_server.config.model import AgentSettings
from lyma_server.errors import EditConflict, UsageError
from lyma_server.protocol.events import Attempt, Event, EventBody, ItemCompleted, Usage
from lyma_server.protocol.messages import AskParams, AskResult
from lyma_server.router.chat import (
    Block,
    ChatEvent,
    ChatRequest,
    Completed,
    FinishReason,
    Message,
    Origin,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)
from lyma_server.secret import Redactor, Secret

if TYPE_CHECKING:
    from lyma_server.agent.turn import Turn

KEY = "sk-test-0123456789abcdefghij"
"""A key that the redactor of a desk knows."""
ORIGIN = Origin("fake", "model-1")
Step = ChatEvent | Attempt | BaseException | Callable[[], object]
"""One step of a script: an event to yield, an attempt to tell, an error to raise, or something to call (and await)."""


def answer(
    *blocks: Block | str, finish: FinishReason | None = None, usage: Usage | None = None, origin: Origin = ORIGIN
) -> list[ChatEvent]:
    """The events of a whole answer; texts are streamed word by word."""
    whole = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    events: list[ChatEvent] = []
    for block in whole:
        events += deltas(block, sum(isinstance(event, ToolCallDelta) for event in events))
    calls = any(isinstance(block, ToolCall) for block in whole)
    finish = finish or ("tool_calls" if calls else "end_turn")
    return [
        *events,
        Completed(Message("assistant", whole, origin), finish, usage or Usage(input_tokens=10, output_tokens=5)),
    ]


def deltas(block: Block, index: int) -> list[ChatEvent]:
    if isinstance(block, ToolCall):
        return [ToolCallDelta(index, block.name, block.raw)]
    if isinstance(block, (Text, Thinking)):
        kind = TextDelta if isinstance(block, Text) else ThinkingDelta
        return [kind(word) for word in block.text.split(" ") for word in (word, " ")][:-1]
    return []


class FakeRouter:
    """Plays one script a call and keeps the requests. `closed` counts the streams that were closed before their end."""

    def __init__(self, *scripts: Iterable[Step]) -> None:
        self.scripts = [list(script) for script in scripts]
        self.requests: list[ChatRequest] = []
        self.closed = 0

    async def stream(self, request: ChatRequest, on_attempt: OnAttempt) -> AsyncIterator[ChatEvent]:
        self.requests.append(request)
        if len(self.requests) > len(self.scripts):
            raise AssertionError("the router was called once too often")
        try:
            for step in self.scripts[len(self.requests) - 1]:
                await asyncio.sleep(0)
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, Attempt):
                    on_attempt(step)
                elif callable(step):
                    if asyncio.iscoroutine(waiting := step()):
                        await waiting
                else:
                    yield step
        except (GeneratorExit, asyncio.CancelledError):
            self.closed += 1
            raise


class FakeWorkspace:
    """Files in memory; `root` may be any absolute path."""

    def __init__(self, root: Path | None, files: dict[str, str] | None = None) -> None:
        self.root = root
        self.files = {(root or Path("/")) / name: text for name, text in (files or {}).items()}
        self.changes: list[FileChange] = []
        self.confirming: set[Path] = set()

    def uri(self, path: Path) -> str:
        return path.as_uri()

    def path(self, uri: str) -> Path:
        if not uri.startswith("file:"):
            raise UsageError(f"{uri} is not the address of a file.")
        return Path(unquote(urlsplit(uri).path))

    async def read(self, path: Path) -> FileText:
        await asyncio.sleep(0)
        if path not in self.files:
            raise FileMissing(f"There is no file {path}.")
        return FileText(path, self.files[path], self.base(path) or "")

    def confirms(self, path: Path) -> bool:
        return path in self.confirming

    async def apply(self, change: FileChange) -> None:
        await asyncio.sleep(0)
        if change.base != self.base(change.path):
            raise EditConflict(f"{change.path} has changed since it was read.")
        self.changes.append(change)
        if change.text is None:
            del self.files[change.path]
        else:
            self.files[change.path] = change.text

    def base(self, path: Path) -> str | None:
        text = self.files.get(path)
        return None if text is None else hashlib.sha256(text.encode()).hexdigest()


@define
class FakePerson:
    """Gives the same answer to everything and keeps what it was asked."""

    says: bool | None = True
    channel: str = "terminal"
    questions: list[Question] = field(factory=list)
    requests: list[ApprovalRequest] = field(factory=list)

    async def confirm(self, question: Question) -> bool | None:
        self.questions.append(question)
        return self.says

    async def approve(self, request: ApprovalRequest) -> ApprovalReply | None:
        self.requests.append(request)
        return None if self.says is None else ApprovalReply(request.hash, request.nonce, self.says)


class Ears:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def bodies(self) -> list[EventBody]:
        return [event.body for event in self.events]

    @property
    def types(self) -> list[str]:
        return [event.body.type for event in self.events]


class Desk:
    """An agent with everything it needs; one per test."""

    def __init__(self, home: Path, *scripts, files=None, settings=None, says: bool | None = True) -> None:
        self.router = FakeRouter(*scripts)
        self.workspace = FakeWorkspace(home / "work", files)
        self.person = FakePerson(says)
        self.sessions = SessionStore(home / "home" / "sessions")
        self.redactor = Redactor([Secret(KEY)])
        self.agent = Agent(self.router, self.sessions, settings or AgentSettings(), self.redactor, home / "home")
        self.ears = Ears()

    def start(self, prompt="Hello", **params) -> Turn:
        return self.agent.start(AskParams(prompt=prompt, **params), self.workspace, self.person, self.ears)

    async def ask(self, prompt="Hello", **params) -> AskResult:
        return await self.start(prompt, **params).result()

    def completed(self, kind: type) -> list:
        items = [body.item for body in self.ears.bodies if isinstance(body, ItemCompleted)]
        return [item for item in items if isinstance(item, kind)]
