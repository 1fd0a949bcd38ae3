"""What a failure says, whatever shape it has: flat, nested, a string, a list, HTML, JSON inside a string, an `error`
inside a 200. Nothing here raises on any input.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import Factory, define, frozen

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

Shape: TypeAlias = Literal[
    "empty", "html", "text", "json", "answer", "empty_arguments", "broken_arguments", "cut_text", "cut_call", "refusal"
]

_CODE_FIELDS = ("code", "error_code", "errorCode")
_MESSAGE_FIELDS = ("message", "msg", "error_msg", "error_message", "error_description")
_NESTED_FIELDS = ("error", "errors", "detail", "details", "metadata", "raw", "response")
_DEEPEST = 8
_LONGEST = 2000
_HTML = re.compile(r"<(?:!doctype html|html|head|body|\?xml)", re.IGNORECASE)
_CUT = {"length", "max_tokens", "model_context_window_exceeded"}
_REFUSED = {"content_filter", "refusal"}

_IMPLIED_STATUS = (
    (r"overloaded", 529),
    (r"authentication|invalid_?api_?key|unauthori[sz]ed", 401),
    (r"billing_error|payment_required", 402),
    (r"permission|access_?denied|forbidden", 403),
    (r"not_?found", 404),
    (r"request_too_large|payload_too_large", 413),
    (r"rate_?limit|throttl|too_many_requests|limit_requests|limit_burst_rate|resource_exhausted", 429),
    (r"timeout_error|gateway_?timeout|request_?timeout", 504),
    (r"service_?unavailable|unavailable_error", 503),
    (r"api_error|server_?error|internal_?error", 500),
    (r"invalid_request|bad_?request|invalid_?parameter|validation|exceed_context_size", 400),
)
"""Types and codes that name a status where HTTP itself said 200: an error inside a stream or inside a body."""


@frozen
class Signal:
    """The facts that classification looks at. `status` is the one that counts: HTTP's own, else the one that the error
    inside a 200 names or implies, else 0. `code`, `type_` and `message` hold all that were found, a line each.
    """

    provider: str
    phase: str
    transport: str
    status: int
    shape: Shape
    code: str
    type_: str
    message: str
    parameter: str | None = None


@define
class _Found:
    codes: list[str] = Factory(list)
    types: list[str] = Factory(list)
    messages: list[str] = Factory(list)
    parameter: str | None = None


def read_signal(*, provider: str, phase: str, transport: str, status: int | None, body: Json) -> Signal:
    """Find code, type and message in a body of any shape."""
    value = _parse(body)
    found = _Found()
    _collect(value, found, 0)
    code, type_ = "\n".join(found.codes), "\n".join(found.types)
    return Signal(
        provider=provider.lower(),
        phase=phase,
        transport=transport,
        status=_effective_status(status, found.codes, f"{code}\n{type_}"),
        shape=_semantic_shape(value) if phase == "semantic" else _shape(value),
        code=code,
        type_=type_,
        message="\n".join(found.messages)[:_LONGEST],
        parameter=found.parameter,
    )


def _parse(body: Json) -> Json:
    """JSON wherever a text holds it, whatever the content type said: keep-alive newlines may come before it."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    text = body.strip()
    if text[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _collect(value: Json, found: _Found, depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        inner = _parse(value) if depth else value
        if isinstance(inner, str):
            found.messages.append(inner[:_LONGEST])
        else:
            _collect(inner, found, depth + 1)
    elif isinstance(value, list):
        for item in value[:3]:
            _collect(item, found, depth + 1)
    elif isinstance(value, dict):
        _collect_fields(value, found, depth)


def _collect_fields(fields: dict[str, Json], found: _Found, depth: int) -> None:
    found.codes += [str(fields[name]) for name in _CODE_FIELDS if _is_word(fields.get(name))]
    if _is_word(fields.get("type")) and fields["type"] != "error":
        found.types.append(str(fields["type"]))
    if found.parameter is None and isinstance(fields.get("param"), str):
        found.parameter = fields["param"]
    for name in (*_NESTED_FIELDS, *_MESSAGE_FIELDS):
        if name in fields:
            _collect(fields[name], found, depth + 1)


def _is_word(value: Json) -> bool:
    return (isinstance(value, str) and bool(value)) or (isinstance(value, int) and not isinstance(value, bool))


def _effective_status(status: int | None, codes: list[str], words: str) -> int:
    if status is not None and not 200 <= status < 300:
        return status
    for code in codes:
        if code.isascii() and code.isdigit() and len(code) == 3 and 400 <= int(code) < 600:
            return int(code)
    return next((implied for pattern, implied in _IMPLIED_STATUS if re.search(pattern, words, re.IGNORECASE)), 0)


def _shape(value: Json) -> Shape:
    if value is None or value in ("", [], {}):
        return "empty"
    if isinstance(value, str):
        return "html" if _HTML.search(value[:1000]) else "text"
    return "answer" if _is_answer(value) else "json"


def _is_answer(value: Json) -> bool:
    """A chat completion or an Anthropic message, and no error in it."""
    if not isinstance(value, dict) or value.get("error"):
        return False
    if value.get("type") == "message" and isinstance(value.get("content"), list):
        return True
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    return isinstance(choices[0].get("message") or choices[0].get("delta"), dict)


def _semantic_shape(value: Json) -> Shape:
    """How a whole answer of the model ended: `{tool_calls: [{function: {arguments}}], finish_reason}`."""
    fields = value if isinstance(value, dict) else {}
    finish = fields.get("finish_reason") or fields.get("stop_reason")
    calls = fields.get("tool_calls")
    states = {_arguments_state(call) for call in calls} if isinstance(calls, list) else set()
    if isinstance(finish, str) and finish in _REFUSED:
        return "refusal"
    if "broken" in states:
        return "broken_arguments"
    if isinstance(finish, str) and finish in _CUT:
        return "cut_call" if states else "cut_text"
    return "empty_arguments" if "empty" in states else "answer"


def _arguments_state(call: Json) -> Literal["empty", "object", "broken"]:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if arguments == "":
        return "empty"
    parsed = _parse(arguments) if isinstance(arguments, str) else arguments
    return "object" if isinstance(parsed, dict) else "broken"
