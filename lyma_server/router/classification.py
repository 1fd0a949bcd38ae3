"""Signal -> class: one row a known failure, the first that matches wins.

A row is compared by phase and shape, then provider, status, code, type and message; a field that is left out matches
anything. Patterns ignore case and are searched line by line; they are compiled when a failure first needs them. Rows go
from the telling to the vague: what a provider says in words beats its codes where those mislead, and a bare status comes
last.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Container

    from lyma_server.router.actions import RequestAction
    from lyma_server.router.signals import Signal


@frozen(kw_only=True)
class Row:
    """One known failure. `provider`, `phase`, `shape` and `transport` are alternatives joined by `|`; `code`, `type_` and
    `message` are regular expressions, in which `.*` is a gap of at most 200 characters. `request` replaces the class's own request action.
    """

    class_: str
    phase: str = ""
    transport: str = ""
    shape: str = ""
    provider: str = ""
    statuses: Container[int] | None = None
    code: str = ""
    type_: str = ""
    message: str = ""
    request: RequestAction | None = None


_QWEN = "qwen|dashscope"
_KIMI = "kimi|moonshot"
_REFUSAL = (0, 400, 413, 422)
"""Statuses of a request that was read and refused; 0 is an error inside a 200 that names none."""
_REFUSAL_OR_CRASH = (*_REFUSAL, 500)
_SERVER = range(500, 600)

_WITHOUT_WORDS = (
    Row(transport="cancelled|deadline", class_="cancelled"),
    Row(transport="connect_error", phase="transport", class_="connect_error"),
    Row(transport="dns_error", phase="transport", class_="dns_error"),
    Row(transport="tls_error", phase="transport", class_="tls_error"),
    Row(transport="timeout", phase="transport", class_="timeout"),
    Row(transport="protocol_error", class_="protocol_error"),
    Row(transport="cut", phase="transport|body|stream", class_="stream_cut"),
    Row(phase="transport", class_="unknown"),
    Row(phase="stall", class_="stalled"),
    Row(phase="stream", shape="empty", class_="stream_cut"),
    Row(phase="semantic", shape="refusal", class_="content_filter"),
    Row(phase="semantic", shape="broken_arguments", class_="tool_args_invalid"),
    Row(phase="semantic", shape="cut_call", class_="truncated", request="do_not_execute_reissue"),
    Row(phase="semantic", shape="cut_text", class_="truncated"),
    Row(phase="semantic", shape="empty_arguments", class_="ok", request="accept_as_empty_object"),
    Row(phase="semantic", class_="ok"),
    Row(phase="body", shape="answer", class_="ok"),
    Row(phase="body|stream", shape="empty|html|text|answer", class_="protocol_error"),
)

_MONEY = (
    Row(statuses=(429,), message=r"#token-limit", class_="rate_limit"),
    Row(provider=_QWEN, statuses=(429,), code=r"^insufficient_quota$|^limit_|^Throttling", class_="rate_limit"),
    Row(statuses=(402,), class_="quota_exhausted"),
    Row(code=r"^Arrearage$|BillOverdue$|^CommodityNotPurchased$|FreeTierOnly$", class_="quota_exhausted"),
    Row(
        code=r"spend_limit|usage_limit_exceeded|credit_balance|^insufficient_quota$|^billing_",
        class_="quota_exhausted",
    ),
    Row(type_=r"^insufficient_quota$|^exceeded_current_quota_error$|^billing_error$", class_="quota_exhausted"),
    Row(
        statuses=(0, 400, 401, 403, 429),
        message=r"credit balance is too low|insufficient balance|insufficient credits?\b|reached your specified api usage limits",
        class_="quota_exhausted",
    ),
)

_LOAD = (
    Row(
        statuses=(413, 429), message=r"request too large.*limit:? \d+,? requested:? \d+", class_="request_exceeds_tier"
    ),
    Row(statuses=(503,), message=r"loading model|model is (?:still |currently )?loading", class_="warming_up"),
    Row(statuses=(429,), type_=r"engine_overloaded", class_="overloaded"),
    Row(statuses=(429,), message=r"(?:engine|model) is (?:currently )?overloaded", class_="overloaded"),
    Row(
        provider="openrouter",
        statuses=(429,),
        message=r"provider returned error|upstream",
        class_="overloaded",
    ),
    Row(statuses=(529,), class_="overloaded"),
    Row(statuses=_SERVER, type_=r"overloaded|service_unavailable", class_="overloaded"),
    Row(statuses=_SERVER, code=r"overloaded|service_unavailable", class_="overloaded"),
    Row(statuses=(503,), message=r"overloaded|\bbusy\b|capacity", class_="overloaded"),
    Row(statuses=(429,), class_="rate_limit"),
)

_ACCESS = (
    Row(
        statuses=(0, 400, 401, 403),
        message=r"(?:invalid|incorrect) api.?key|api.?key (?:is )?(?:not |in)valid",
        class_="auth_invalid",
    ),
    Row(code=r"unsupported_country", class_="region_denied"),
    Row(
        statuses=(0, 400, 403, 451),
        message=r"(?:country|region|location).*(?:not supported|unsupported|not available)"
        r"|not available in your (?:country|region)|error code: 10(?:0[5-9]|1[0-2]|20)\b|your ip\b",
        class_="region_denied",
    ),
    Row(statuses=(401,), class_="auth_invalid"),
    Row(statuses=(451,), class_="region_denied"),
    Row(statuses=(0, 400, 403, 422), code=r"content_filter|content_policy|data_?inspection", class_="content_filter"),
    Row(statuses=(0, 400, 403, 422), type_=r"content_filter|content_policy|data_?inspection", class_="content_filter"),
    Row(
        statuses=(0, 400, 403, 422),
        message=r"inappropriate content|considered high risk|content exists risk|content (?:management|filtering) policy"
        r"|flagged as potentially violating|(?:input|prompt) was flagged|requires moderation",
        class_="content_filter",
    ),
    Row(statuses=(403,), class_="permission"),
)

_MODEL = (
    Row(
        message=r"does not support (?:tools|tool|function|images?\b|vision)|support tool use|tool (?:use|calling) is not supported"
        r"|requires? (?:the )?--jinja|requires --enable-auto-tool-choice|image input is not supported",
        class_="capability_missing",
    ),
    Row(code=r"model_?not_?found|model_?not_?exist", class_="model_unavailable"),
    Row(
        statuses=(0, 400, 404),
        message=r"model not exist|try pulling|not a valid model|no models? loaded|model.*(?:not found|does ?n[o']t exist)"
        r"|(?:not found|unknown|no such|invalid) (?:the )?model\b",
        class_="model_unavailable",
    ),
    Row(statuses=(404, 405), shape="html|empty", class_="wrong_url"),
    Row(
        statuses=(404, 405),
        message=r"^(?:404[ :]*)?(?:page |file )?not found\.?$|invalid url|unexpected endpoint|no route|method not allowed",
        class_="wrong_url",
    ),
    Row(
        statuses=(0, 200, 400),
        message=r"unexpected endpoint|plain http request was sent to https",
        class_="wrong_url",
    ),
    Row(statuses=(404, 410), class_="model_unavailable"),
    Row(statuses=(301, 308, 405), class_="wrong_url"),  # moved for good; it is not followed, since a key would go along
)

_REQUEST = (
    Row(statuses=(408,), class_="timeout", request="retry_same_once_then_next_provider"),
    Row(statuses=(409,), class_="conflict"),
    Row(statuses=(504,), class_="timeout", request="rotate_key"),
    Row(
        statuses=_REFUSAL,
        message=r"input length and `?max_tokens`? exceed context limit|max_tokens.* is too large.*maximum context length",
        class_="context_overflow",
        request="shrink_max_tokens_then_history",
    ),
    Row(statuses=_REFUSAL_OR_CRASH, code=r"context_length_exceeded|context_window", class_="context_overflow"),
    Row(statuses=_REFUSAL_OR_CRASH, type_=r"exceed_context_size", class_="context_overflow"),
    Row(
        statuses=_REFUSAL_OR_CRASH,
        message=r"(?:prompt|input|request) is too long|maximum context length|range of input length|context window"
        r"|exceeds? (?:the )?(?:available )?context|context (?:size|length) (?:exceeded|of only)|model token limit"
        r"|too many (?:input )?tokens",
        class_="context_overflow",
    ),
    Row(statuses=(413,), class_="payload_too_large"),
    Row(
        statuses=_REFUSAL,
        message=r"`?tool_(?:use|result)`?.*(?:without|must have|corresponding|unexpected)|unexpected `?tool_use_id"
        r"|tool_call_ids?\b.*(?:not found|did not have|must be)|must be a response to a prec|must be followed by tool messages"
        r"|thinking\.signature|invalid `?signature|expected `?(?:redacted_)?thinking|thinking`? .*must be passed back"
        r"|reasoning_content.*(?:must be passed|missing)|thinking`? .*cannot be modified|roles must alternate"
        r"|no tool (?:call|output) found for function call",
        class_="history_invalid",
    ),
    Row(statuses=_REFUSAL, code=r"unsupported_(?:parameter|value)|unknown_parameter", class_="param_unsupported"),
    Row(
        statuses=_REFUSAL,
        message=r"unsupported parameter|unrecognized request argument|unknown parameter|extra inputs are not permitted"
        r"|parameter\.enable_thinking|`?(?:temperature|top_p)`? .*(?:not support|deprecated|only)"
        r"|tool_choice.*(?:not support|incompatible)|max_tokens:? \d+ > \d+|invalid max_tokens|max_tokens is too large",
        class_="param_unsupported",
    ),
    Row(
        provider=_QWEN,
        statuses=(500,),
        code=r"InternalError\.Algo",
        message=r"^(?:Expecting |Unterminated string|Extra data|Invalid (?:\\|control))",
        class_="model_output_invalid",
    ),
    Row(code=r"^tool_use_failed$", class_="model_output_invalid"),
    Row(
        statuses=(500,),
        message=r"(?:parse|parsing) (?:the )?(?:tool call|input at pos)",
        class_="model_output_invalid",
    ),
)

_BARE = (
    Row(
        statuses=(400, 411, 414, 415, 422, 431), shape="html", class_="protocol_error"
    ),  # a page of what stands between
    Row(statuses=(400, 411, 414, 415, 422, 431), class_="bad_request"),
    Row(statuses=_SERVER, class_="server_error"),
    Row(phase="body|stream", statuses=(0,), class_="protocol_error"),
)

UNKNOWN = Row(class_="unknown")
ROWS: tuple[Row, ...] = (*_WITHOUT_WORDS, *_MONEY, *_LOAD, *_ACCESS, *_MODEL, *_REQUEST, *_BARE)

_VENDORS = (
    ("anthropic", r"(^|\.)anthropic\.com$"),
    ("openai", r"(^|\.)openai\.com$"),
    ("deepseek", r"(^|\.)deepseek\.com$"),
    ("qwen", r"(^|\.)(?:aliyuncs|aliyun)\.com$"),
    ("kimi", r"(^|\.)(?:moonshot\.(?:ai|cn)|kimi\.(?:ai|com))$"),
    ("openrouter", r"(^|\.)openrouter\.ai$"),
)
_LOCAL_PORTS = {11434: "ollama", 8080: "llama.cpp", 8000: "vllm", 1234: "lmstudio"}


def vendor(name: str, base_url: str | None) -> str:
    """Whose codes a provider speaks: by the host of its URL, then by the usual ports of local servers, then by its name."""
    try:
        address = urlsplit(base_url or "")
        host, port = address.hostname or "", address.port
    except ValueError:
        return name.lower()
    for known, pattern in _VENDORS:
        if re.search(pattern, host):
            return known
    return _LOCAL_PORTS.get(port or 0, name.lower())


_Patterns: TypeAlias = tuple[re.Pattern[str] | None, ...]


def classify(signal: Signal) -> Row:
    """The first row that matches; `UNKNOWN` where none does."""
    texts = (signal.code, signal.type_, signal.message)
    rows = _rows_for(signal.status, signal.phase, signal.transport, signal.shape, signal.provider)
    return next((row for row, patterns in rows if _hold(patterns, texts)), UNKNOWN)


@lru_cache(maxsize=256)
def _rows_for(status: int, phase: str, transport: str, shape: str, provider: str) -> tuple[tuple[Row, _Patterns], ...]:
    """The rows that only code, type and message can still rule out, with their patterns."""
    return tuple(
        (row, (_pattern(row.code), _pattern(row.type_), _pattern(row.message)))
        for row in ROWS
        if (row.statuses is None or status in row.statuses)
        and _is_one_of(phase, row.phase)
        and _is_one_of(transport, row.transport)
        and _is_one_of(shape, row.shape)
        and _is_one_of(provider, row.provider)
    )


def _is_one_of(value: str, alternatives: str) -> bool:
    return not alternatives or value in alternatives.split("|")


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    """Gaps are bounded, so that a long message cannot make the search slow."""
    return re.compile(text.replace(".*", ".{0,200}"), re.IGNORECASE | re.MULTILINE) if text else None


def _hold(patterns: _Patterns, texts: tuple[str, ...]) -> bool:
    return all(pattern is None or pattern.search(text) for pattern, text in zip(patterns, texts, strict=True))


_PARAMETER = (
    r"(?:unsupported parameter|unrecognized request argument supplied|unknown parameter|unsupported value)[: ]+['\"`]?([\w.]+)"
    r"|parameter\.(\w+)|['\"`]?\b(max_tokens|max_completion_tokens|temperature|top_p|tool_choice|stream_options)\b"
    r"|^([\w.]{1,100}): extra inputs"
)


def unsupported_parameter(signal: Signal) -> str | None:
    """The name of the parameter that a provider refuses, where it says so."""
    if signal.parameter:
        return signal.parameter
    found = re.search(_PARAMETER, signal.message, re.IGNORECASE | re.MULTILINE)
    return found[found.lastindex or 0] if found else None


_ROOMS = (
    (r"exceed context limit: (\d{1,9}) \+ \d{1,9} > (\d{1,9})", 2, 1),
    (r"maximum context length is (\d{1,9}) tokens.{0,200}?request has (\d{1,9}) input tokens", 1, 2),
    (r"supports at most (\d{1,9}) completion tokens", 1, 0),
    (r"valid range of max_tokens is \[\d+, ?(\d{1,9})\]", 1, 0),
    (r"max_tokens:? \d{1,9} > (\d{1,9})", 1, 0),
)
"""Pattern, the group that holds the whole, the group that holds what is used (0: none)."""


def room_for_answer(message: str) -> int | None:
    """How many tokens the answer may have, where the numbers in `message` say so and leave any."""
    for pattern, whole, used in _ROOMS:
        if found := re.search(pattern, message):
            room = int(found[whole]) - (int(found[used]) if used else 0)
            return room if room > 0 else None
    return None
