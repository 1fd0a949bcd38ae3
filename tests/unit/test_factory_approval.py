"""The states of a question, and what a record is worth: every step that is not allowed is refused."""

from __future__ import annotations

import itertools
import threading
from typing import get_args

import attrs
import pytest

from lyma_server.errors import ApprovalDenied, ApprovalExpired, ApprovalRequired, HashMismatch, LymaError
from lyma_server.factory import approval
from lyma_server.factory.approval import (
    QUESTION_S,
    RECORD_S,
    STEPS,
    Answer,
    Question,
    Record,
    Subject,
    Wanted,
    is_overdue,
    judge,
    make_record,
    may_supersede,
    nonce_digest,
    read_record,
    record_as_json,
    redeem,
    settle,
    step,
)
from lyma_server.factory.questions import Questions

SUBJECT = Subject("sha256:" + "a" * 64, "/home/dev/app", "b" * 64)
QUESTION = Question(SUBJECT, nonce_digest("n1"), asked_at=100.0, channel="terminal")
YES = Answer(SUBJECT, "n1", approved=True)
STATES, NAMES = get_args(approval.State), get_args(approval.Step)


@pytest.mark.parametrize(("state", "name"), list(itertools.product(STATES, NAMES)))
def test_only_the_steps_in_the_table_are_taken(state, name):
    question = attrs.evolve(QUESTION, state=state)
    if (state, name) in STEPS:
        assert step(question, name).state == STEPS[state, name]
    else:
        with pytest.raises(ApprovalDenied, match="settled"):
            step(question, name)


def test_the_table_is_the_one_that_was_meant():
    ends = ("approved", "rejected", "expired", "withdrawn")
    steps = {
        ("pending", name): state for name, state in zip(("approve", "reject", "expire", "withdraw"), ends, strict=True)
    }
    assert steps | {(state, "consume"): "consumed" for state in ends} == STEPS


@pytest.mark.parametrize(
    ("answer", "now", "state"),
    [
        (YES, 100.0, "approved"),
        (YES, 100.0 + QUESTION_S - 0.001, "approved"),
        (YES, 100.0 + QUESTION_S, "expired"),
        (YES, 99.0, "expired"),
        (attrs.evolve(YES, approved=False), 101.0, "rejected"),
        (attrs.evolve(YES, approved="yes"), 101.0, "rejected"),
        (attrs.evolve(YES, approved=1), 101.0, "rejected"),
        (attrs.evolve(YES, approved=None), 101.0, "rejected"),
        (attrs.evolve(YES, subject=attrs.evolve(SUBJECT, hash="sha256:" + "c" * 64)), 101.0, "withdrawn"),
        (attrs.evolve(YES, subject=attrs.evolve(SUBJECT, workspace="/home/dev/other")), 101.0, "withdrawn"),
        (attrs.evolve(YES, subject=attrs.evolve(SUBJECT, shown="d" * 64)), 101.0, "withdrawn"),
    ],
)
def test_an_answer_settles_a_question(answer, now, state):
    assert settle(QUESTION, answer, now).state == state


@pytest.mark.parametrize("nonce", ["", "n", "n2", "N1", nonce_digest("n1"), "\udcff"])
def test_another_nonce_settles_nothing(nonce):
    with pytest.raises(ApprovalDenied, match="does not belong"):
        settle(QUESTION, attrs.evolve(YES, nonce=nonce), 101.0)


@pytest.mark.parametrize("state", [state for state in STATES if state != "pending"])
def test_a_settled_question_is_not_answered_again(state):
    with pytest.raises(ApprovalDenied, match="settled"):
        settle(attrs.evolve(QUESTION, state=state), YES, 101.0)
    assert not is_overdue(attrs.evolve(QUESTION, state=state), 1e9)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("pending", ApprovalDenied),
        ("rejected", ApprovalDenied),
        ("expired", ApprovalExpired),
        ("withdrawn", HashMismatch),
        ("consumed", ApprovalDenied),
    ],
)
def test_only_an_approved_question_makes_a_record(state, error):
    question = attrs.evolve(QUESTION, state=state)
    for use in (redeem, lambda each: make_record(each, "a", 1, 0)):
        with pytest.raises(error) as caught:
            use(question)
        assert type(caught.value) is error
        assert caught.value.exit_code == 3


def test_an_approved_question_makes_one_record():
    approved = step(QUESTION, "approve")
    record = make_record(approved, "todo", 4, 1000)
    assert record == Record(
        SUBJECT.hash, "todo", SUBJECT.workspace, SUBJECT.shown, 4, "terminal", 1000, 1000 + RECORD_S
    )
    used = redeem(approved)
    assert used.state == "consumed"
    with pytest.raises(ApprovalDenied):
        redeem(used)


RECORD = make_record(step(QUESTION, "approve"), "todo", 1, 1000)
WANTED = Wanted(SUBJECT.hash, SUBJECT.workspace, 1)


@pytest.mark.parametrize("now", [1000, 1000 - 300, 1000 + RECORD_S - 1])
def test_a_record_counts_while_it_lasts(now):
    assert judge(RECORD, WANTED, now) == RECORD


@pytest.mark.parametrize(
    ("record", "wanted", "now", "error"),
    [
        (None, WANTED, 1000, ApprovalRequired),
        (RECORD, WANTED, 1000 + RECORD_S, ApprovalExpired),
        (RECORD, WANTED, 1000 - 301, ApprovalExpired),
        (RECORD, attrs.evolve(WANTED, hash="sha256:" + "c" * 64), 1000, HashMismatch),
        (RECORD, attrs.evolve(WANTED, workspace="/home/dev"), 1000, HashMismatch),
        (RECORD, attrs.evolve(WANTED, runner_abi=2), 1000, ApprovalExpired),
    ],
)
def test_a_record_that_does_not_count_is_refused(record, wanted, now, error):
    with pytest.raises(error) as caught:
        judge(record, wanted, now)
    assert isinstance(caught.value, LymaError)
    assert wanted.hash in caught.value.message
    assert caught.value.data["hash"] == wanted.hash


GOOD = record_as_json(RECORD)


def test_a_record_is_written_and_read_back():
    assert read_record(GOOD) == RECORD


BAD = [
    None, [], "", 1, {}, {"hash": SUBJECT.hash},
    *({name: value for name, value in GOOD.items() if name != missing} for missing in GOOD),
    {**GOOD, "more": 1},
    *({**GOOD, name: wrong} for name in GOOD for wrong in (None, True, [], {}, 1.5)),
    *({**GOOD, name: ""} for name in ("hash", "name", "workspace", "shown", "channel")),
    {**GOOD, "hash": "sha256:12"}, {**GOOD, "hash": "a" * 64}, {**GOOD, "channel": "model"}, {**GOOD, "format": 2}, {**GOOD, "format": "1"},
    {**GOOD, "expires_at": GOOD["approved_at"]}, {**GOOD, "expires_at": GOOD["expires_at"] + 1}, {**GOOD, "approved_at": "1000"},
]  # fmt: skip


def test_what_is_not_exactly_a_record_is_none():
    for value in BAD:
        assert read_record(value) is None, value


@pytest.mark.parametrize(
    ("channel", "revoked", "allowed"),
    [
        ("terminal", True, True),
        ("editor", True, False),
        (None, True, False),
        ("editor", False, True),
        ("terminal", False, True),
    ],
)
def test_what_was_revoked_is_approved_again_in_a_terminal_only(channel, revoked, allowed):
    assert may_supersede(channel, revoked=revoked) is allowed


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_nonce_is_used_once_and_kept_nowhere():
    questions = Questions(Clock())
    nonce = questions.ask(SUBJECT, "editor")
    assert len(nonce) >= 40
    assert nonce not in repr(questions.pending())
    assert nonce not in repr(Answer(SUBJECT, nonce, approved=True))
    answer = Answer(SUBJECT, nonce, approved=True)
    assert questions.answer(answer).state == "approved"
    with pytest.raises(ApprovalDenied, match="no open question"):
        questions.answer(answer)


def test_an_answer_for_something_else_burns_the_nonce():
    questions = Questions(Clock())
    nonce = questions.ask(SUBJECT, "editor")
    other = attrs.evolve(SUBJECT, hash="sha256:" + "c" * 64)
    assert questions.answer(Answer(other, nonce, approved=True)).state == "withdrawn"
    with pytest.raises(ApprovalDenied):
        questions.answer(Answer(SUBJECT, nonce, approved=True))


def test_a_wrong_nonce_leaves_the_question_open():
    questions = Questions(Clock())
    nonce = questions.ask(SUBJECT, "editor")
    with pytest.raises(ApprovalDenied):
        questions.answer(Answer(SUBJECT, "guess", approved=True))
    assert questions.answer(Answer(SUBJECT, nonce, approved=True)).state == "approved"


def test_questions_expire_and_are_withdrawn():
    clock = Clock()
    questions = Questions(clock)
    first, second = questions.ask(SUBJECT, "editor"), questions.ask(SUBJECT, "terminal")
    other = attrs.evolve(SUBJECT, hash="sha256:" + "c" * 64)
    third = questions.ask(other, "editor")
    questions.withdraw(first)
    questions.withdraw("unknown")
    assert [each.channel for each in questions.pending()] == ["terminal", "editor"]
    questions.withdraw_all(SUBJECT.hash)
    assert [each.subject for each in questions.pending()] == [other]
    assert questions.expire() == ()
    clock.now += QUESTION_S
    assert questions.pending() == ()
    assert [(each.subject, each.state) for each in questions.expire()] == [(other, "expired")]
    for nonce in (first, second, third):
        with pytest.raises(ApprovalDenied):
            questions.answer(Answer(SUBJECT, nonce, approved=True))


def test_an_answer_that_comes_late_is_expired():
    clock = Clock()
    questions = Questions(clock)
    nonce = questions.ask(SUBJECT, "editor")
    clock.now += QUESTION_S
    assert questions.answer(Answer(SUBJECT, nonce, approved=True)).state == "expired"


def test_of_many_answers_at_once_one_counts():
    questions = Questions()
    nonce = questions.ask(SUBJECT, "editor")
    states, barrier = [], threading.Barrier(8)

    def answer():
        barrier.wait()
        try:
            states.append(questions.answer(Answer(SUBJECT, nonce, approved=True)).state)
        except ApprovalDenied:
            states.append("refused")

    threads = [threading.Thread(target=answer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(states) == ["approved", *["refused"] * 7]
