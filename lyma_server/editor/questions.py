"""The approvals that wait for the person at the editor. Each ends with one answer, by whichever way it comes."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import define, field

from lyma_server.errors import ApprovalDenied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.agent.ports import ApprovalReply, ApprovalRequest


@define(eq=False)
class OpenQuestion:
    """A question under way. `handed_out` tells whether the client was given its nonce."""

    request: ApprovalRequest
    reply: asyncio.Future[ApprovalReply] = field(factory=lambda: asyncio.get_running_loop().create_future(), repr=False)
    handed_out: bool = False

    def settle(self, *, approved: bool) -> None:
        """Take the answer; a second one finds nothing to settle."""
        from lyma_server.agent.ports import ApprovalReply

        if not self.reply.done():
            self.reply.set_result(ApprovalReply(self.request.hash, self.request.nonce, approved))


class OpenQuestions:
    """All of them, in the order in which they were asked."""

    def __init__(self) -> None:
        self._open: list[OpenQuestion] = []

    @contextmanager
    def asking(self, request: ApprovalRequest) -> Iterator[OpenQuestion]:
        """Keep a question while it is asked."""
        question = OpenQuestion(request)
        self._open.append(question)
        try:
            yield question
        finally:
            self._open.remove(question)

    def listed(self) -> tuple[ApprovalRequest, ...]:
        """Those that wait."""
        return tuple(question.request for question in self._open if not question.reply.done())

    def answer(self, hash_: str, nonce: str, *, approved: bool) -> None:
        """Answer the question whose nonce the client was given. Raises ApprovalDenied where there is none."""
        given = nonce.encode("utf-8", "replace")
        for question in self._open:
            known = question.handed_out and not question.reply.done() and question.request.hash == hash_
            if known and hmac.compare_digest(question.request.nonce.encode(), given):
                question.settle(approved=approved)
                return
        raise ApprovalDenied(
            "There is no open question that this answers: it was answered, withdrawn or never asked.", hash=hash_
        )

    def reject(self, hash_: str) -> int:
        """Say no to all questions about an agent, which needs no nonce; the number of them."""
        found = [each for each in self._open if each.request.hash == hash_ and not each.reply.done()]
        for question in found:
            question.settle(approved=False)
        return len(found)
