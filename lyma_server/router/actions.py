"""The names of what can be done about a failure, as tests/data/error_payloads.json uses them."""

from __future__ import annotations

from typing import Literal, TypeAlias

Phase: TypeAlias = Literal["transport", "http", "body", "stream", "stall", "semantic"]

KeyAction: TypeAlias = Literal["none", "disable", "disable_account", "cooldown_account_model", "block_model"]
ProviderAction: TypeAlias = Literal["none", "breaker_fail", "breaker_open_10s", "breaker_open_30s", "disable_provider"]
RequestAction: TypeAlias = Literal[
    "accept",
    "accept_as_empty_object",
    "continue_answer",
    "do_not_execute_reissue",
    "fail",
    "next_provider",
    "next_provider_or_shrink",
    "next_provider_or_stream_interrupted",
    "repair_retry_once",
    "retry_same_once_then_next_provider",
    "rotate_key",
    "rotate_key_once_then_next_provider",
    "shrink",
    "shrink_max_tokens_then_history",
    "stream_interrupted",
    "wait_poll_or_next_provider",
]
