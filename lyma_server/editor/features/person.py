"""The person at the editor: asked through prompts of LSP. A prompt that is dismissed is unanswered, never yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsprotocol import types

from lyma_server.editor.features.ladder import ask_in_editor, choose
from lyma_server.editor.features.transcript import show_text

if TYPE_CHECKING:
    from lyma_server.agent.ports import ApprovalReply, ApprovalRequest, Question
    from lyma_server.editor.server import LymaServer
    from lyma_server.factory.approval import Channel

YES: Final = "Allow"
NO: Final = "Refuse"
_LINES: Final = 3
_LINE: Final = 200


class EditorPerson:
    """Asks with `window/showMessageRequest`; what does not fit a prompt is shown in a document first."""

    channel: Channel = "editor"

    def __init__(self, server: LymaServer) -> None:
        self._server = server

    async def confirm(self, question: Question) -> bool | None:
        """Null where nobody answered, or where the question could not be shown in full."""
        message = f"{question.title}\n{question.text}".strip()
        if not _fits(message):
            if not await show_text(self._server, question.title, f"```\n{question.text}\n```\n"):
                return None
            message = f"{question.title[:_LINE]}\nThe text is in the document that has just been opened."
        chosen = await choose(self._server, types.MessageType.Warning, message, (YES, NO))
        return {YES: True, NO: False}.get(chosen or "")

    async def approve(self, request: ApprovalRequest) -> ApprovalReply | None:
        """Null where nobody answered, or where the agent could not be shown in full."""
        return await ask_in_editor(self._server, request)


def _fits(message: str) -> bool:
    lines = message.splitlines()
    return len(lines) <= _LINES and all(len(line) <= _LINE for line in lines)
