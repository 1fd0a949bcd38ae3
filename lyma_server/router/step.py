"""From a decision to the next step of one model call: pure, so that the loop that does I/O has no choices to make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

from lyma_server.router.policy import CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.protocol.events import RouteNext
    from lyma_server.router.policy import Decision

FEWEST_ATTEMPTS = 6
LONGEST_WAIT_S = 5.0
WARM_UP_POLL_S = 1.0
WARM_UP_WHILE_OTHERS_WAIT_S = 60.0
"""How long a loading model is waited for, in seconds, although another provider is free."""

_ASKED_AGAIN = {"retry", "repair"}


@frozen
class Attempted:
    """An attempt of this call that is over: where, its class, and the step that followed it."""

    provider: str
    model: str
    class_: str
    next: RouteNext


@frozen
class Facts:
    """Where a call stands after a failure, once the decision has been written to key ring, breaker and state.

    `provider` and `model` have just failed; `attempts` are those before. `keys_left` counts usable keys of this provider
    and model that this call has not tried (0 where its breaker is open); `providers_left` counts other providers that have
    a usable key; `larger_left` says whether one of these has a larger window. `candidates` counts every (provider, key)
    that this call may use. `deadline_s` is what is left of the call, `spent_s` what is over, in seconds. `wait_s` is how
    long until the first cooled candidate is free again, null where none will be. `can_shrink` and `can_repair` say
    whether the request has anything left to drop or mend.
    """

    provider: str
    model: str
    attempts: tuple[Attempted, ...] = ()
    keys_left: int = 0
    providers_left: int = 0
    candidates: int = 1
    deadline_s: float = 600.0
    spent_s: float = 0.0
    wait_s: float | None = None
    larger_left: bool = False
    can_shrink: bool = False
    can_repair: bool = False


@frozen
class Step:
    """`kind` is the name that `route` events use: `rotate` the next key of this provider, `fallback` the next provider,
    `retry` the same candidate unchanged, `shrink` or `repair` the request and ask the same candidate, `wait` `wait_s`
    seconds and ask again (the candidate that `wait_s` came from; the same one while its model loads), `fail` with
    AllFailed (or StreamInterrupted once text was shown), `done` the answer stands.
    """

    kind: RouteNext
    wait_s: float = 0.0


_Move: TypeAlias = Literal[
    "done", "rotate", "rotate_once", "fallback", "fallback_once", "larger", "retry_once", "shrink", "repair_once", "wait",
    "poll",
]  # fmt: skip

_MOVES: dict[str, tuple[_Move, ...]] = {
    "accept": ("done",),
    "accept_as_empty_object": ("done",),
    "continue_answer": ("done",),
    "do_not_execute_reissue": ("done",),
    "fail": (),
    "stream_interrupted": (),
    "next_provider": ("fallback", "rotate", "wait"),
    "next_provider_or_shrink": ("fallback", "shrink"),
    "next_provider_or_stream_interrupted": ("fallback", "rotate", "wait"),
    "repair_retry_once": ("repair_once",),
    "retry_same_once_then_next_provider": ("retry_once", "fallback", "rotate", "wait"),
    "rotate_key": ("rotate", "fallback", "wait"),
    "rotate_key_once_then_next_provider": ("rotate_once", "fallback"),
    "shrink": ("shrink", "larger"),
    "shrink_max_tokens_then_history": ("shrink", "larger"),
    "wait_poll_or_next_provider": ("poll", "fallback", "wait"),
}
"""Request action -> the moves to try, in order; where none is possible the call fails."""

_MOVES_OF_CLASS: dict[str, tuple[_Move, ...]] = {"content_filter": ("fallback_once",), "payload_too_large": ("shrink",)}


def next_step(decision: Decision, facts: Facts) -> Step:
    """The first move that is possible. A committed answer, a spent deadline and a spent budget of attempts all fail."""
    moves = _MOVES[decision.request]
    if decision.request == CLASSES[decision.class_].request:
        moves = _MOVES_OF_CLASS.get(decision.class_, moves)
    if moves == ("done",):
        return Step("done")
    if facts.deadline_s <= 0 or _counted(decision, facts) >= max(FEWEST_ATTEMPTS, facts.candidates):
        return Step("fail")
    return next((step for move in moves if (step := _TRY[move](decision, facts))), Step("fail"))


def _counted(decision: Decision, facts: Facts) -> int:
    """Attempts that use up the budget, this one included. Refused keys and empty accounts do not; nor does one after which
    the same candidate was asked again, since that is done once: else two at each of three leave none for the fourth.
    """
    past = (attempt.class_ for attempt in facts.attempts if attempt.next not in _ASKED_AGAIN)
    return sum(CLASSES[class_].counted for class_ in (decision.class_, *past))


def _seen(decision: Decision, facts: Facts) -> bool:
    return any(attempt.class_ == decision.class_ for attempt in facts.attempts)


def _was_here(kind: RouteNext, decision: Decision, facts: Facts) -> bool:
    """Whether this step followed this class at this provider and model earlier in the call."""
    past = Attempted(facts.provider, facts.model, decision.class_, kind)
    return past in facts.attempts


def _poll(facts: Facts) -> Step | None:
    patient = not facts.providers_left or facts.spent_s < WARM_UP_WHILE_OTHERS_WAIT_S
    return Step("wait", WARM_UP_POLL_S) if patient and facts.deadline_s > WARM_UP_POLL_S else None


def _wait(facts: Facts) -> Step | None:
    if facts.wait_s is None or facts.wait_s > min(LONGEST_WAIT_S, facts.deadline_s):
        return None
    return Step("wait", facts.wait_s)


def _if(possible: object, kind: RouteNext) -> Step | None:
    return Step(kind) if possible else None


_TRY: dict[_Move, Callable[[Decision, Facts], Step | None]] = {
    "done": lambda _decision, _facts: Step("done"),
    "rotate": lambda _decision, facts: _if(facts.keys_left, "rotate"),
    "rotate_once": lambda decision, facts: _if(facts.keys_left and not _was_here("rotate", decision, facts), "rotate"),
    "fallback": lambda _decision, facts: _if(facts.providers_left, "fallback"),
    "fallback_once": lambda decision, facts: _if(facts.providers_left and not _seen(decision, facts), "fallback"),
    "larger": lambda _decision, facts: _if(facts.larger_left, "fallback"),
    "retry_once": lambda decision, facts: _if(not _was_here("retry", decision, facts), "retry"),
    "repair_once": lambda decision, facts: _if(facts.can_repair and not _was_here("repair", decision, facts), "repair"),
    "shrink": lambda _decision, facts: _if(facts.can_shrink, "shrink"),
    "poll": lambda _decision, facts: _poll(facts),
    "wait": lambda _decision, facts: _wait(facts),
}
