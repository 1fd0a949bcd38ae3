"""Whether a person has approved an agent: the states of a question, and what a record on the disk is worth. Pure.

A question is pending until it is approved, rejected, expired or withdrawn, and then consumed, once. Its nonce is bound to
the agent's hash, to the workspace and to the bytes that were shown; it is kept only as a digest. Times are seconds: of a
monotonic clock for questions, since 1970 for records.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from attrs import asdict, evolve, fields, frozen

from lyma_server.errors import ApprovalDenied, ApprovalExpired, ApprovalRequired, HashMismatch
from lyma_server.factory.canonical import HASH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.protocol.base import Json

QUESTION_S: Final = 600
"""How long a question waits for its answer."""

RECORD_S: Final = 90 * 86_400
"""How long an approval holds."""

CLOCK_SLACK_S: Final = 300
"""How far in the future an approval may seem to have been given, for clocks that were set back a little."""

RECORD_FORMAT: Final = 1

State: TypeAlias = Literal["pending", "approved", "rejected", "expired", "withdrawn", "consumed"]
Step: TypeAlias = Literal["approve", "reject", "expire", "withdraw", "consume"]
Channel: TypeAlias = Literal["terminal", "editor"]
"""Where the person answered."""

STEPS: Final[Mapping[tuple[State, Step], State]] = {
    ("pending", "approve"): "approved",
    ("pending", "reject"): "rejected",
    ("pending", "expire"): "expired",
    ("pending", "withdraw"): "withdrawn",
    ("approved", "consume"): "consumed",
    ("rejected", "consume"): "consumed",
    ("expired", "consume"): "consumed",
    ("withdrawn", "consume"): "consumed",
}
"""All that can happen. Anything else is refused."""


@frozen
class Subject:
    """What is asked about: an agent, where it would work, and the digest of all that the person is shown."""

    hash: str
    workspace: str
    shown: str


@frozen
class Question:
    """`nonce` is a digest, `asked_at` a monotonic time."""

    subject: Subject
    nonce: str
    asked_at: float
    channel: Channel
    state: State = "pending"


@frozen
class Answer:
    """What came back. `nonce` is the one that was handed out with the question."""

    subject: Subject
    nonce: str
    approved: bool

    def __repr__(self) -> str:
        return f"Answer({self.subject.hash}, approved={self.approved})"


def step(question: Question, name: Step) -> Question:
    """Take one step. Raises ApprovalDenied where the question's state does not allow it."""
    state = STEPS.get((question.state, name))
    if state is None:
        raise ApprovalDenied(
            f"The question about {question.subject.hash} is settled ({question.state}); ask again.",
            hash=question.subject.hash,
        )
    return evolve(question, state=state)


def is_overdue(question: Question, now: float) -> bool:
    """Whether a pending question has waited too long; a clock that runs backwards counts as that, too."""
    return question.state == "pending" and not 0 <= now - question.asked_at < QUESTION_S


def settle(question: Question, answer: Answer, now: float) -> Question:
    """What becomes of a question by an answer that knows its nonce: approved, rejected, expired or withdrawn.

    It is withdrawn where the answer speaks of anything else than what was asked. Raises ApprovalDenied where the question
    was settled before or the nonce is another one; then nothing changes.
    """
    if not is_nonce(question, answer.nonce):
        raise ApprovalDenied(
            f"The answer does not belong to the question about {question.subject.hash}; ask again.",
            hash=question.subject.hash,
        )
    if is_overdue(question, now):
        return step(question, "expire")
    if answer.subject != question.subject:
        return step(question, "withdraw")
    return step(question, "approve" if answer.approved is True else "reject")


def redeem(question: Question) -> Question:
    """Use a settled question up. Raises what its state means, unless it was approved."""
    consumed = step(question, "consume")
    refusal = _REFUSALS.get(question.state)
    if refusal is not None:
        error, problem = refusal
        raise error(f"{question.subject.hash} is not approved: {problem}.", hash=question.subject.hash)
    return consumed


_REFUSALS: Final[Mapping[State, tuple[type[ApprovalDenied | ApprovalExpired | HashMismatch], str]]] = {
    "rejected": (ApprovalDenied, "a person said no"),
    "expired": (ApprovalExpired, "nobody answered in time; ask again"),
    "withdrawn": (HashMismatch, "the question was withdrawn, or the answer was to another one; ask again"),
}


def nonce_digest(nonce: str) -> str:
    """What is kept of a nonce."""
    return hashlib.sha256(nonce.encode("utf-8", "surrogatepass")).hexdigest()


def is_nonce(question: Question, nonce: str) -> bool:
    """Whether `nonce` is the question's, told in constant time."""
    return hmac.compare_digest(question.nonce, nonce_digest(nonce))


@frozen
class Record:
    """An approval on the disk. `workspace` is a real path, `shown` the digest of what the person saw."""

    hash: str
    name: str
    workspace: str
    shown: str
    runner_abi: int
    channel: Channel
    approved_at: int
    expires_at: int
    format: int = RECORD_FORMAT


def make_record(question: Question, name: str, runner_abi: int, now: int) -> Record:
    """The record of an approved question. Raises what `redeem` does."""
    redeem(question)
    subject = question.subject
    expires_at = now + RECORD_S
    return Record(subject.hash, name, subject.workspace, subject.shown, runner_abi, question.channel, now, expires_at)


def record_as_json(record: Record) -> dict[str, Json]:
    """For the disk."""
    return asdict(record)


def read_record(value: Json) -> Record | None:
    """A record from the disk, null where it is not exactly one."""
    names = {field.name for field in fields(Record)}
    if not isinstance(value, dict) or set(value) != names:
        return None
    record = Record(**value)
    texts = (record.hash, record.name, record.workspace, record.shown)
    numbers = (record.format, record.runner_abi, record.approved_at, record.expires_at)
    sound = all(type(each) is str and each for each in texts) and all(type(each) is int for each in numbers)
    if not sound or record.channel not in ("terminal", "editor") or record.format != RECORD_FORMAT:
        return None
    lasts = record.expires_at - record.approved_at
    return record if HASH.fullmatch(record.hash) and 0 < lasts <= RECORD_S else None


@frozen
class Wanted:
    """What is about to run, where, and by which runner."""

    hash: str
    workspace: str
    runner_abi: int


def judge(record: Record | None, wanted: Wanted, now: float) -> Record:
    """Let an approval count, or raise: ApprovalRequired where there is none, HashMismatch where it is for something else,
    ApprovalExpired where it is too old.
    """
    if record is None:
        raise ApprovalRequired(
            f"Nobody has approved {wanted.hash} here; run `lyma approve {wanted.hash}`.", hash=wanted.hash
        )
    if (record.hash, record.workspace) != (wanted.hash, wanted.workspace):
        raise HashMismatch(
            f"The approval of {wanted.hash} is for something else; run `lyma approve {wanted.hash}`.", hash=wanted.hash
        )
    if record.runner_abi != wanted.runner_abi:
        raise ApprovalExpired(
            f"{wanted.hash} was approved for another version of Lyma's runner; run `lyma approve {wanted.hash}`.",
            hash=wanted.hash,
        )
    if not record.approved_at - CLOCK_SLACK_S <= now < record.expires_at:
        raise ApprovalExpired(
            f"The approval of {wanted.hash} is too old; run `lyma approve {wanted.hash}`.", hash=wanted.hash
        )
    return record


def may_supersede(channel: Any, *, revoked: bool) -> bool:
    """Whether an approval by this channel counts: what was revoked is approved again only in a terminal."""
    return not revoked or channel == "terminal"
