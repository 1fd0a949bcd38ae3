"""What a body is: a request, a notification, a response, or none of these."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from lyma_server.editor.rpc.framing import Oversized
    from lyma_server.protocol.base import Json

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_INITIALIZED: Final = -32002
REQUEST_CANCELLED: Final = -32800

Id: TypeAlias = str | int | float
"""JSON-RPC allows fractions in ids; they are handed back as they came."""

_VALUE = rb'(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|null)'
_MEMBER = rb'\s*"(?:jsonrpc|id|method)"\s*:\s*' + _VALUE + rb"\s*"
_HEAD: Final = re.compile(rb"\s*\{(" + _MEMBER + rb"(?:," + _MEMBER + rb")*)")
_TAIL: Final = re.compile(rb",(" + _MEMBER + rb"(?:," + _MEMBER + rb")*)\}\s*$")
_INFINITE: Final = (float("inf"), float("-inf"))
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@frozen(eq=False, repr=False)
class Request:
    id: Id
    method: str
    params: Json


@frozen(eq=False, repr=False)
class Notification:
    method: str
    params: Json


@frozen(eq=False, repr=False)
class Response:
    """`error` is null where the client did what it was asked."""

    id: Json
    result: Json
    error: Json


@frozen(eq=False, repr=False)
class Invalid:
    """Nothing that can be served. `id` is the one to answer to, null where none can be made out."""

    id: Id | None
    code: int
    reason: str


Message: TypeAlias = Request | Notification | Response | Invalid


def open_body(body: bytes) -> Message:
    """Read a body."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        return Invalid(None, PARSE_ERROR, f"The message is not JSON: {_describe(problem)}.")
    if b"\\u" in body:
        value = _without_lone_surrogates(value)
    return classify(value)


def open_oversized(oversized: Oversized, limit: int) -> Invalid:
    """The refusal of a body that is too large, addressed to its id where that stands at either end of it."""
    reason = f"The message has {oversized.length} bytes; at most {limit} are read."
    return Invalid(_find_id(oversized), INVALID_REQUEST, reason)


def classify(value: Json) -> Message:
    """Tell what a JSON value is."""
    if not isinstance(value, dict):
        batch = "Batches are not served; send one message at a time."
        return Invalid(None, INVALID_REQUEST, batch if isinstance(value, list) else "A message is a JSON object.")
    if "method" not in value and ("result" in value or "error" in value):
        return Response(value.get("id"), value.get("result"), value.get("error"))
    identity = valid_id(value.get("id"))
    method: Any = value.get("method")
    refusals = (
        ("id" in value and identity is None, "An id is a string or a number."),
        (value.get("jsonrpc") != "2.0", 'The member "jsonrpc" must be "2.0".'),
        (not isinstance(method, str), 'The member "method" must be a string.'),
    )
    for holds, reason in refusals:
        if holds:
            return Invalid(identity, INVALID_REQUEST, reason)
    return (
        Notification(method, value.get("params"))
        if identity is None
        else Request(identity, method, value.get("params"))
    )


def valid_id(value: Json) -> Id | None:
    """`value` where it can name a request, else null. A number too large to be held (1e400) could not be sent back."""
    usable = isinstance(value, str | int | float) and not isinstance(value, bool) and value not in _INFINITE
    return value if usable else None


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


def _describe(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg[:1].lower()}{problem.msg[1:]} at character {problem.pos}"
    if isinstance(problem, UnicodeDecodeError):
        return f"byte {problem.start} is not UTF-8"
    return "it is nested too deeply" if isinstance(problem, RecursionError) else "it holds a value that cannot be read"


def _without_lone_surrogates(value: Json) -> Json:
    """Half a surrogate pair is valid JSON but no text: nothing downstream could write it as UTF-8."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_LONE_SURROGATE.sub("\ufffd", key): _without_lone_surrogates(item) for key, item in value.items()}
    return value


def _find_id(oversized: Oversized) -> Id | None:
    for match in (_HEAD.match(oversized.head), _TAIL.search(oversized.tail)):
        if match is not None:
            members = json.loads(b"{" + match[1] + b"}")
            identity = valid_id(members.get("id"))
            if identity is not None:
                return identity
    return None
