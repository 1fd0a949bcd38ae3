"""The one gate that every agent passes before it runs: has a person approved exactly this, here?

Only `answer` writes an approval, and only for a question that was asked and shown. No tool of a model reaches this module.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.errors import ApprovalDenied
from lyma_server.factory.approval import Answer, Record, Subject, Wanted, judge, make_record, may_supersede
from lyma_server.factory.audit import Audit
from lyma_server.factory.canonical import digest
from lyma_server.factory.questions import Questions
from lyma_server.factory.records import Records
from lyma_server.factory.versions import RUNNER_ABI

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lyma_server.config.paths import Home
    from lyma_server.factory.approval import Channel
    from lyma_server.factory.bundle import Bundle


@frozen
class Asked:
    """A question that waits for a person. Hand `nonce` to the face that shows `shown`, and to nothing else."""

    bundle: Bundle
    subject: Subject
    nonce: str

    def __repr__(self) -> str:
        return f"Asked({self.subject.hash})"


class Gate:
    """`clock` gives whole seconds since 1970. Raises the errors of approvals, and LymaError where the log cannot be written."""

    def __init__(
        self,
        home: Home,
        questions: Questions | None = None,
        clock: Callable[[], float] = time.time,
        runner_abi: int = RUNNER_ABI,
    ) -> None:
        self.records = Records(home.approvals)
        self.audit = Audit(home.audit)
        self._questions = questions or Questions()
        self._clock = clock
        self._runner_abi = runner_abi

    def check(self, hash_: str, workspace: Path) -> Record:
        """Let a hash pass, or raise ApprovalRequired, ApprovalExpired, ApprovalDenied or HashMismatch.

        Call it again before each step of a long run: an approval can be revoked meanwhile.
        """
        if self.records.is_revoked(hash_):
            raise ApprovalDenied(
                f"{hash_} was revoked; only `lyma approve` in a terminal approves it again.", hash=hash_
            )
        real = real_workspace(workspace)
        return judge(self.records.find(hash_, real), Wanted(hash_, real, self._runner_abi), self._clock())

    def ask(self, bundle: Bundle, workspace: Path, shown: bytes, channel: Channel) -> Asked:
        """Open a question about `bundle`, of which the person sees the bytes `shown`."""
        self._refuse_revoked(bundle.hash, channel)
        subject = Subject(bundle.hash, real_workspace(workspace), digest(shown))
        return Asked(bundle, subject, self._questions.ask(subject, channel))

    def answer(self, asked: Asked, hash_: str, nonce: str, *, approved: bool) -> Record:
        """Take a person's answer, which must echo hash and nonce. Writes the log first, then the approval.

        Raises unless it is an approval of exactly what was asked, in time.
        """
        given = Subject(hash_, asked.subject.workspace, asked.subject.shown)
        question = self._questions.answer(Answer(given, nonce, approved))
        now = int(self._clock())
        if question.state != "approved":
            self._log(question.state, now, question.subject)
        record = make_record(question, asked.bundle.name, self._runner_abi, now)
        self._refuse_revoked(hash_, question.channel)
        self._log("approved", now, question.subject, channel=question.channel)
        self.records.write(record)
        return record

    def withdraw(self, asked: Asked) -> None:
        """Take a question back; a late answer finds nothing."""
        self._questions.withdraw(asked.nonce)

    def revoke(self, hash_: str) -> int:
        """Take every approval of a hash back, and leave a tombstone; returns how many approvals there were."""
        now = int(self._clock())
        self._questions.withdraw_all(hash_)
        self.audit.append("revoked", now, hash=hash_)
        return self.records.revoke(hash_, now)

    def forget(self, hash_: str) -> int:
        """Note that an agent is to be removed, and take what approvals it has back; returns how many there were."""
        approved = any(record.hash == hash_ for record in self.records.all())
        revoked = self.revoke(hash_) if approved else 0
        self._questions.withdraw_all(hash_)
        self.audit.append("removed", int(self._clock()), hash=hash_)
        return revoked

    def _refuse_revoked(self, hash_: str, channel: Channel) -> None:
        if not may_supersede(channel, revoked=self.records.is_revoked(hash_)):
            raise ApprovalDenied(
                f"{hash_} was revoked; only `lyma approve` in a terminal approves it again.", hash=hash_
            )

    def _log(self, event: str, now: int, subject: Subject, **facts: str) -> None:
        self.audit.append(event, now, hash=subject.hash, workspace=subject.workspace, shown=subject.shown, **facts)


def real_workspace(workspace: Path) -> str:
    """A workspace as approvals know it: its real path. Raises ApprovalDenied where it has none that can be written down."""
    try:
        real = str(workspace.resolve(strict=True))
        real.encode()
    except (OSError, UnicodeEncodeError, RuntimeError) as error:
        raise ApprovalDenied(
            f"Agents cannot be approved for {workspace}: it is no folder with a plain path."
        ) from error
    return real
