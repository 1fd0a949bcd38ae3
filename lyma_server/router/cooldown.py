"""How long an account rests after a rate limit: the first of the headers, the message and a doubling default that speaks."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORTEST_S = 1.0
LONGEST_S = 86_400.0
JITTER = 0.1
DEFAULT_S = 60.0
DEFAULT_LONGEST_S = 900.0

_EPOCH_S = 1e9
_EPOCH_MS = 1e12
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_DURATION_PART = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?)\s*"
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])(?:\s*,?\s*(?:and\s+)?)",
    re.IGNORECASE,
)
_GO_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "mi": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_INVITATION = re.compile(
    r"(?:try again|retry(?: again)?|wait(?: for)?|available(?: again)?)(?: in| after)?(?: about)?\s+(?=\d)",
    re.IGNORECASE,
)


def cooldown_length(
    headers: Mapping[str, str], message: str, now: float, *, strikes: int = 0, chance: float = 0.0
) -> float:
    """Seconds from now, between 1 and 86 400.

    `headers` have lower-case names. `now` is the wall clock; where the server sent a Date, its own clock counts.
    `strikes` earlier cooldowns double the default; `chance` in [0, 1) adds up to a tenth.
    """
    length = stated_wait(headers, message, now)
    if length is None:
        length = min(DEFAULT_S * 2.0 ** min(strikes, 10), DEFAULT_LONGEST_S)
    return min(max(length, SHORTEST_S) * (1 + JITTER * chance), LONGEST_S)


def stated_wait(headers: Mapping[str, str], message: str, now: float) -> float | None:
    """The wait that the server asks for in seconds, or None where it says nothing that can be read."""
    server_now = _moment(headers.get("date", ""))
    since = now if server_now is None else server_now
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    for wait in (_retry_after(headers, since), _reset_wait(headers, since), _message_wait(message)):
        if wait is not None:
            return wait
    return None


def _retry_after(headers: Mapping[str, str], since: float) -> float | None:
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    moment = _moment(value)
    return None if moment is None else moment - since


def _reset_wait(headers: Mapping[str, str], since: float) -> float | None:
    """The longest of the limits that are used up: OpenAI writes the kind last, Anthropic in the middle."""
    waits = [
        wait
        for name, value in headers.items()
        if "ratelimit" in name and "remaining" in name and _number(value) == 0
        for wait in [_reset_value(headers.get(name.replace("remaining", "reset"), ""), since)]
        if wait is not None
    ]
    return max(waits, default=None)


def _reset_value(value: str, since: float) -> float | None:
    """A Go duration (OpenAI), an RFC 3339 moment (Anthropic), seconds, or an epoch in seconds or milliseconds (OpenRouter)."""
    number = _number(value)
    if number is not None:
        if number >= _EPOCH_MS:
            return number / 1000 - since
        return number - since if number >= _EPOCH_S else number
    duration = go_duration(value)
    if duration is not None:
        return duration
    moment = _moment(value)
    return None if moment is None else moment - since


def go_duration(text: str) -> float | None:
    """Seconds in a Go duration such as `6m0s`, `174ms` or `1h2m3.5s`; None for anything else."""
    text = text.strip()
    parts = list(_GO_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        return None
    return sum(float(part[1]) * _UNIT_S[part[2]] for part in parts)


def _message_wait(message: str) -> float | None:
    """`Please try again in 6m0s`, `retry after 30 seconds`, `try again in 1 minute and 5 seconds`."""
    for invitation in _INVITATION.finditer(message):
        position, total = invitation.end(), None
        while part := _DURATION_PART.match(message, position):
            total = (total or 0.0) + float(part[1]) * _unit_seconds(part[2].lower())
            position = part.end()
        if total is not None:
            return total
    return None


def _unit_seconds(unit: str) -> float:
    if unit == "ms" or unit.startswith("milli"):
        return 1e-3
    return _UNIT_S[unit[0]]


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _moment(text: str) -> float | None:
    """Epoch seconds of an HTTP date or an RFC 3339 moment; a moment without a zone is UTC."""
    from email.utils import parsedate_to_datetime

    text = text.strip()
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        return seconds if math.isfinite(seconds) else None
    return None
