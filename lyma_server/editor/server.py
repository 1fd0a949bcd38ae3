"""What the features share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import TextDocumentSyncKind
from pygls.lsp.server import LanguageServer

from lyma_server import __version__
from lyma_server.editor.client import Client
from lyma_server.editor.engine import Build, Engine
from lyma_server.editor.features import register
from lyma_server.editor.features.documents import Documents
from lyma_server.editor.questions import OpenQuestions
from lyma_server.editor.rpc.conversion import strict_converter
from lyma_server.editor.rpc.protocol import LymaProtocol
from lyma_server.editor.turns import Turns

if TYPE_CHECKING:
    from lyma_server.editor.rpc.lifetime import Lifetime
    from lyma_server.editor.rpc.writer import Writer


class LymaServer(LanguageServer):
    """One editor, its documents, its turns and the core behind them."""

    protocol: LymaProtocol

    def __init__(self, build: Build) -> None:
        """`build` makes the core; it is called in a thread, when the editor is ready."""
        self.engine = Engine(build)
        self.client = Client({})
        self.documents = Documents()
        self.turns = Turns()
        self.questions = OpenQuestions()
        self.looking_at: set[str] = set()
        """The agents whose text is about to be looked at, by URI."""
        self.told_of: dict[str, set[str]] = {}
        """By agent, the documents that something was said of."""
        super().__init__(
            "lyma", __version__, TextDocumentSyncKind.Full, None, LymaProtocol, converter_factory=strict_converter
        )
        self.lifetime: Lifetime | None = None
        self.writer: Writer | None = None
        register(self)

    def connect(self, lifetime: Lifetime, writer: Writer) -> None:
        """Learn what this connection lives by."""
        self.lifetime, self.writer = lifetime, writer

    @property
    def congested(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return self.writer is not None and self.writer.congested

    def redact(self, text: str) -> str:
        """`text` without the secrets that are known so far."""
        return self.engine.redact(text)

    async def close(self) -> None:
        """End the turns and give back what the core holds."""
        await self.turns.close()
        await self.engine.close()
