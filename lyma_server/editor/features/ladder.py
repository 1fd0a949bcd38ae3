"""How the person at the editor is asked about an agent: as well as the client can, and never less than in full.

First by `lyma/requestApproval`, if the client has advertised it; else by a read-only document and a prompt of LSP's own. Where
neither can be done, nobody is asked. Meanwhile `lyma/approve` may bring the answer, too.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lyma_server.agent.ports import ApprovalReply
from lyma_server.editor.features.transcript import show_file
from lyma_server.editor.features.uris import to_uri
from lyma_server.editor.rpc.envelope import METHOD_NOT_FOUND
from lyma_server.errors import UsageError
from lyma_server.protocol.agents import RequestApprovalParams, RequestApprovalResult
from lyma_server.protocol.convert import structure, unstructure

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import ApprovalRequest
    from lyma_server.editor.questions import OpenQuestion
    from lyma_server.editor.server import LymaServer

REJECT: Final = "Reject"
_LINE: Final = 200
_DIGITS: Final = 6


class StepDown(Exception):
    """The client has no such thing."""


async def ask_in_editor(server: LymaServer, request: ApprovalRequest) -> ApprovalReply | None:
    """The person's answer; null where nobody answered or nobody could be asked."""
    with server.questions.asking(request) as question:
        asking = asyncio.ensure_future(_climb_down(server, request, question))
        try:
            both: set[asyncio.Future[Any]] = {asking, question.reply}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return question.reply.result() if question.reply.done() else asking.result()
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asking


async def _climb_down(server: LymaServer, request: ApprovalRequest, question: OpenQuestion) -> ApprovalReply | None:
    shown = await asyncio.to_thread(write_view, server.engine.home, request)
    if server.client.asked_for_approvals:
        with suppress(StepDown):
            return await _by_request(server, request, question, shown)
    return await _by_prompt(server, request, shown)


async def _by_request(
    server: LymaServer, request: ApprovalRequest, question: OpenQuestion, shown: Path | None
) -> ApprovalReply | None:
    params = RequestApprovalParams(
        hash=request.hash,
        nonce=request.nonce,
        title=request.title,
        summary=request.summary,
        text=request.text,
        manifest=request.manifest,
        path=request.path,
        uri=None if shown is None else to_uri(shown),
    )
    question.handed_out = True
    try:
        answer = await server.protocol.send_request_async("lyma/requestApproval", unstructure(params))
    except JsonRpcException as problem:
        if problem.code == METHOD_NOT_FOUND:
            question.handed_out = False
            raise StepDown from problem
        return None
    return _reply_of(answer)


def _reply_of(answer: Any) -> ApprovalReply | None:
    """What the client answered, to be judged by the gate; what is no answer at all is none."""
    if answer is None:
        return None
    try:
        found = structure(RequestApprovalResult, answer)
    except UsageError:
        return None
    return ApprovalReply(found.hash, found.nonce, found.approved)


async def _by_prompt(server: LymaServer, request: ApprovalRequest, shown: Path | None) -> ApprovalReply | None:
    """What cannot be shown in full is not asked about."""
    if shown is None or not await show_file(server, shown):
        return None
    approve = approve_title(request.hash)
    chosen = await choose(server, types.MessageType.Warning, prompt_text(request), (approve, REJECT))
    if chosen is None:
        return None
    return ApprovalReply(request.hash, request.nonce, chosen == approve)


def approve_title(hash_: str) -> str:
    """The button that approves, with the beginning of the hash that it approves."""
    return f"Approve {hash_.removeprefix('sha256:')[:_DIGITS]}…"


def prompt_text(request: ApprovalRequest) -> str:
    """At most three lines, which is what prompts show."""
    asker = f"Asked for by {' > '.join(request.path)}. " if request.path else ""
    purpose = request.summary.split("\n", 1)[0]
    last = f"{asker}All that it may do and is told is in the document that has just been opened."
    return "\n".join(line[:_LINE] for line in (request.title, purpose, last))


def write_view(home: Path | None, request: ApprovalRequest) -> Path | None:
    """Write what the person must see into a file that nobody changes; null where that cannot be done. Blocks."""
    if home is None:
        return None
    folder = home / "transcripts"
    path = folder / f"agent-{request.hash.removeprefix('sha256:')[:12]}.txt"
    draft = folder / f".{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{request.title}\n\n{request.text}")
        draft.replace(path)
    except (OSError, UnicodeEncodeError):
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return None
    return path


async def choose(server: LymaServer, kind: types.MessageType, message: str, titles: tuple[str, ...]) -> str | None:
    """Ask with a prompt of LSP's; null where it is dismissed or the client has none."""
    actions = [types.MessageActionItem(title=title) for title in titles]
    params = types.ShowMessageRequestParams(type=kind, message=message, actions=actions)
    try:
        answer = await server.protocol.send_request_async("window/showMessageRequest", params)
    except JsonRpcException:
        return None
    title = answer.get("title") if isinstance(answer, dict) else None
    return title if isinstance(title, str) and title in titles else None
