"""The questions that wait for a person, in this process. Whoever answers must know the nonce, which is handed out once."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

from lyma_server.errors import ApprovalDenied
from lyma_server.factory.approval import Answer, Question, Subject, is_nonce, is_overdue, nonce_digest, settle, step

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.factory.approval import Channel


class Questions:
    """Safe to use from several threads. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: list[Question] = []

    def ask(self, subject: Subject, channel: Channel) -> str:
        """Open a question and return its nonce, which must reach the person's face and nothing else."""
        nonce = secrets.token_urlsafe(32)
        with self._lock:
            self._open.append(Question(subject, nonce_digest(nonce), self._clock(), channel))
        return nonce

    def answer(self, answer: Answer) -> Question:
        """Settle the question that the nonce belongs to, whatever comes of it. Raises ApprovalDenied where there is none."""
        with self._lock:
            question = self._find(answer.nonce)
            self._open.remove(question)
            return settle(question, answer, self._clock())

    def withdraw(self, nonce: str) -> None:
        """Take a question back: its turn was cancelled, or its session closed. A late answer finds nothing."""
        with self._lock:
            self._open = [each for each in self._open if not is_nonce(each, nonce)]

    def withdraw_all(self, hash_: str) -> None:
        """Take back all questions about an agent."""
        with self._lock:
            self._open = [each for each in self._open if each.subject.hash != hash_]

    def expire(self) -> tuple[Question, ...]:
        """Close what has waited too long, and return it."""
        with self._lock:
            now = self._clock()
            overdue = tuple(step(each, "expire") for each in self._open if is_overdue(each, now))
            self._open = [each for each in self._open if not is_overdue(each, now)]
        return overdue

    def pending(self) -> tuple[Question, ...]:
        """The questions that still can be answered."""
        with self._lock:
            now = self._clock()
            return tuple(each for each in self._open if not is_overdue(each, now))

    def _find(self, nonce: str) -> Question:
        found = [each for each in self._open if is_nonce(each, nonce)]
        if not found:
            raise ApprovalDenied(
                "There is no open question that this answers: it was answered, withdrawn or never asked."
            )
        return found[0]
