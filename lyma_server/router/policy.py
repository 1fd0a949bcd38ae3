"""What to do about a failure: pure decisions from tables, no clock, no I/O.

A newcomer who meets a new failure adds one row to `classification.ROWS` (signal -> class) and one to
`tests/data/error_payloads.json`; only a new kind of failure needs a row in `CLASSES` (class -> actions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import Factory, frozen

from lyma_server.router.classification import classify, room_for_answer, unsupported_parameter
from lyma_server.router.cooldown import cooldown_length
from lyma_server.router.signals import read_signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.protocol.base import Json
    from lyma_server.router.actions import KeyAction, Phase, ProviderAction, RequestAction

DISABLED_S = 1800.0
"""How long a disabled key, account or provider rests before it is tried again, in seconds; a change of the
configuration ends it at once."""
BLOCKED_S = 3600.0
"""How long a key is not asked for a model that it may not use, in seconds."""


@frozen
class Failure:
    """One failed attempt, or an answer that has to be judged, as the adapter saw it.

    `provider` is the vendor (see `classification.vendor`), which decides what its codes mean. `phase`: `transport` no
    status came; `http` an error status; `body` a 200 that is not a stream (or not the stream that was asked for);
    `stream` an error event, a cut or an end without a finish (body null); `stall` no content in time; `semantic` a whole
    answer (`{tool_calls, finish_reason}`). `transport` is "", `connect_error`, `dns_error`, `tls_error`, `timeout`,
    `cut`, `protocol_error`, `cancelled` or `deadline`. `headers` have lower-case names. `body` is parsed JSON or text.
    `committed`: visible text or a tool delta had already been passed on.
    """

    provider: str
    phase: Phase
    status: int | None = None
    headers: Mapping[str, str] = Factory(dict)
    body: Json = None
    transport: str = ""
    committed: bool = False


@frozen
class ClassRow:
    """What a class of failure does to the key, the provider and the request. `counted`: it uses up the budget of attempts."""

    words: str
    key: KeyAction
    provider: ProviderAction
    request: RequestAction
    counted: bool = True


CLASSES: dict[str, ClassRow] = {
    "ok": ClassRow("answered", "none", "none", "accept"),
    "cancelled": ClassRow("was cancelled or ran out of time", "none", "none", "fail"),
    "connect_error": ClassRow("could not be reached", "none", "breaker_open_10s", "next_provider"),
    "dns_error": ClassRow("has a host name that could not be resolved", "none", "breaker_open_30s", "next_provider"),
    "tls_error": ClassRow("has a certificate that could not be verified", "none", "breaker_open_30s", "next_provider"),
    "timeout": ClassRow("did not answer in time", "none", "breaker_fail", "next_provider"),
    "quota_exhausted": ClassRow("has no credit left", "disable_account", "none", "rotate_key", counted=False),
    "rate_limit": ClassRow("is limiting the rate of requests", "cooldown_account_model", "none", "rotate_key"),
    "request_exceeds_tier": ClassRow(
        "limits requests to fewer tokens than this one has", "none", "none", "next_provider_or_shrink"
    ),
    "overloaded": ClassRow("is overloaded", "none", "breaker_fail", "rotate_key"),
    "auth_invalid": ClassRow("did not accept the key", "disable", "none", "rotate_key", counted=False),
    "region_denied": ClassRow("refuses this region or address", "none", "disable_provider", "next_provider"),
    "permission": ClassRow("does not let this key use the model", "block_model", "none", "rotate_key"),
    "model_unavailable": ClassRow(
        "does not have the model", "block_model", "none", "rotate_key_once_then_next_provider"
    ),
    "wrong_url": ClassRow("has no such URL", "none", "disable_provider", "next_provider"),
    "conflict": ClassRow("reported a conflict", "none", "none", "retry_same_once_then_next_provider"),
    "payload_too_large": ClassRow("takes no request this large", "none", "none", "shrink"),
    "context_overflow": ClassRow("has a context window too small for this", "none", "none", "shrink"),
    "content_filter": ClassRow("filtered the content", "none", "none", "next_provider"),
    "history_invalid": ClassRow("did not accept the history of the session", "none", "none", "repair_retry_once"),
    "param_unsupported": ClassRow("does not know a parameter", "none", "none", "repair_retry_once"),
    "capability_missing": ClassRow("has a model without tools", "block_model", "none", "next_provider"),
    "warming_up": ClassRow("is loading its model", "none", "none", "wait_poll_or_next_provider", counted=False),
    "model_output_invalid": ClassRow(
        "could not read what its model wrote", "none", "none", "retry_same_once_then_next_provider"
    ),
    "bad_request": ClassRow("did not accept the request", "none", "none", "fail"),
    "server_error": ClassRow("had an internal error", "none", "breaker_fail", "rotate_key"),
    "protocol_error": ClassRow(
        "sent what is not an answer", "none", "breaker_fail", "retry_same_once_then_next_provider"
    ),
    "stream_cut": ClassRow(
        "broke off in the middle of its answer", "none", "breaker_fail", "next_provider_or_stream_interrupted"
    ),
    "stalled": ClassRow("stopped sending content", "none", "breaker_fail", "next_provider_or_stream_interrupted"),
    "truncated": ClassRow("reached the limit of its answer", "none", "none", "continue_answer"),
    "tool_args_invalid": ClassRow("wrote an incomplete tool call", "none", "none", "do_not_execute_reissue"),
    "unknown": ClassRow("failed in an unknown way", "none", "breaker_fail", "next_provider"),
}
"""Class -> what to do. `words` complete the sentence "PROVIDER ..."."""

_KEY_SECONDS: dict[KeyAction, float] = {"disable": DISABLED_S, "disable_account": DISABLED_S, "block_model": BLOCKED_S}

_ABOUT_SIZE = {"context_overflow", "param_unsupported"}


@frozen
class Decision:
    """What to do. `cooldown_s` is how long the key action (or a disabled provider) holds, in seconds from now, null where
    nothing is held. `message` is what the provider said: it may echo key material, so redact before showing.
    `parameter` names what a repair has to drop; `room` is how many tokens an answer may have where the provider said so.
    """

    class_: str
    key: KeyAction
    provider: ProviderAction
    request: RequestAction
    cooldown_s: float | None = None
    message: str = ""
    parameter: str | None = None
    room: int | None = None


def decide(failure: Failure, now: float, *, strikes: int = 0, chance: float = 0.0) -> Decision:
    """Classify `failure` and say what to do. Never raises.

    `now` is the wall clock in seconds; `strikes` is how many cooldowns of this account and model came before without a
    success between; `chance` in [0, 1) spreads cooldowns (pass `random.random()`).
    """
    signal = read_signal(
        provider=failure.provider,
        phase=failure.phase,
        transport=failure.transport,
        status=failure.status,
        body=failure.body,
    )
    row = classify(signal)
    actions = CLASSES[row.class_]
    request: RequestAction = row.request or actions.request
    if failure.committed and row.class_ not in {"ok", "cancelled"} and failure.phase != "semantic":
        request = "stream_interrupted"
    cooldown = _KEY_SECONDS.get(actions.key)
    if actions.key == "cooldown_account_model":
        cooldown = cooldown_length(failure.headers, signal.message, now, strikes=strikes, chance=chance)
    elif actions.provider == "disable_provider":
        cooldown = DISABLED_S
    return Decision(
        class_=row.class_,
        key=actions.key,
        provider=actions.provider,
        request=request,
        cooldown_s=cooldown,
        message=signal.message,
        parameter=unsupported_parameter(signal) if row.class_ == "param_unsupported" else None,
        room=room_for_answer(signal.message) if row.class_ in _ABOUT_SIZE else None,
    )
