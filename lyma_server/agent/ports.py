"""What the agent needs of a face. The editor and the terminal each implement these; tests have fakes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from attrs import field, frozen

from lyma_server.errors import ToolError
from lyma_server.protocol.events import Attempt, Event, EventBody

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.factory.approval import Channel
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import ChatEvent, ChatRequest

Listener: TypeAlias = Callable[[Event], None]
"""Where a face hears the events of a turn; must not block."""

Emit: TypeAlias = Callable[[EventBody], None]
"""Where the parts of a turn say what happened; the turn numbers it, logs it and hands it to the listener."""


OnAttempt: TypeAlias = Callable[[Attempt], None]
"""Where the router tells each attempt of a model call."""


class ChatRouter(Protocol):
    """What the turn needs of the router."""

    def stream(self, request: ChatRequest, on_attempt: OnAttempt) -> AsyncIterator[ChatEvent]:
        """One model call. Raises AllFailed, or StreamInterrupted after the first visible token."""


class FileMissing(ToolError):
    """There is no such file; one may be made."""


@frozen
class FileText:
    """A text file as the agent sees it. `text` keeps its line ends; `base` identifies exactly this state (a buffer version
    or the hash of the bytes) and must be handed back when changing the file. `encoding` is a name of `encoding.ENCODINGS`:
    with it, the text can be turned back into exactly the bytes that were read.
    """

    path: Path
    text: str
    base: str
    from_editor: bool = False
    encoding: str = "utf-8"


@frozen
class FileChange:
    """A whole new text for one file. `base` is what it was made from, null for a file that must not exist yet; `text` null
    deletes the file. `confirm`: the face shows the change and a person agrees to it before it is made.
    """

    path: Path
    text: str | None
    base: str | None
    confirm: bool = False


class Workspace(Protocol):
    """The files. Paths are absolute and already judged by the file tools."""

    @property
    def root(self) -> Path | None:
        """The folder that the agent works in, null where there is none (then there are no tools that touch files)."""

    def uri(self, path: Path) -> str:
        """The URI by which the face knows `path`."""

    def path(self, uri: str) -> Path:
        """The absolute path of a `file:` URI. Raises UsageError for any other."""

    async def read(self, path: Path) -> FileText:
        """A dirty buffer beats the disk. Raises FileMissing, or ToolError where it is not a text or is too large."""

    def confirms(self, path: Path) -> bool:
        """Whether `apply` can have a change of this file confirmed as it is made; else the person is asked before."""

    async def apply(self, change: FileChange) -> None:
        """Make the change and verify it, or raise EditConflict and change nothing; ToolError where a person refused it."""


@frozen
class Question:
    """A yes-or-no question about one act of the agent: what it is about, and its text in full."""

    about: Literal["command", "edit"]
    title: str
    text: str


@frozen
class ApprovalRequest:
    """A compiled agent waits for a person. `nonce` is single-use and bound to the hash and to what is shown."""

    hash: str
    nonce: str = field(repr=False)
    title: str
    summary: str
    manifest: dict[str, Json]
    text: str
    path: tuple[str, ...] = ()


@frozen
class ApprovalReply:
    hash: str
    nonce: str = field(repr=False)
    approved: bool


class Person(Protocol):
    """The person behind the face. None means that nobody answered, which is never yes."""

    @property
    def channel(self) -> Channel:
        """Where the person answers."""

    async def confirm(self, question: Question) -> bool | None:
        """Ask about one act."""

    async def approve(self, request: ApprovalRequest) -> ApprovalReply | None:
        """Show a compiled agent in full and ask for approval."""
