"""Signal by signal: its class, and what the class does."""

import pytest

from lyma_server.router.actions import KeyAction, ProviderAction, RequestAction
from lyma_server.router.classification import ROWS, UNKNOWN, classify, vendor
from lyma_server.router.policy import BLOCKED_S, CLASSES, DISABLED_S, Failure, decide
from lyma_server.router.signals import read_signal


def decided(provider, status, message="", *, code=None, type_=None, phase="http", **fields):
    error = {"message": message, "code": code, "type": type_}
    return decide(Failure(provider, phase, status, body={"error": error}, **fields), 0.0)


HTTP = [
    ("deepseek", 402, "Insufficient Balance", None, None, "quota_exhausted"),
    ("deepseek", 400, "Insufficient Balance", None, None, "quota_exhausted"),
    ("anthropic", 429, "", "workspace_spend_limit_reached", None, "quota_exhausted"),
    ("anthropic", 400, "You have reached your specified API usage limits.", None, None, "quota_exhausted"),
    ("kimi", 429, "x", None, "exceeded_current_quota_error", "quota_exhausted"),
    ("openai", 429, "x", "billing_hard_limit_reached", None, "quota_exhausted"),
    ("qwen", 403, "The free tier is exhausted", "AllocationQuota.FreeTierOnly", None, "quota_exhausted"),
    ("qwen", 429, "x", "CommodityNotPurchased", None, "quota_exhausted"),
    ("qwen", 429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota", "rate_limit"),
    ("local", 429, "see https://help.aliyun.com/error-code#token-limit", "insufficient_quota", None, "rate_limit"),
    ("qwen", 429, "x", "Throttling.RateQuota", None, "rate_limit"),
    ("qwen", 429, "x", "limit_requests", None, "rate_limit"),
    ("groq", 413, "Request too large for model: Limit 6000, Requested 7000", None, "tokens", "request_exceeds_tier"),
    ("llama.cpp", 503, "Loading model", 503, "unavailable_error", "warming_up"),
    (
        "kimi",
        429,
        "The engine is currently overloaded, please try again later",
        None,
        "engine_overloaded_error",
        "overloaded",
    ),
    ("kimi", 429, "The engine is currently overloaded", None, None, "overloaded"),
    ("openrouter", 429, "Provider returned error", 429, None, "overloaded"),
    ("openrouter", 429, "Rate limit exceeded: free-models-per-day", 429, None, "rate_limit"),
    ("openai", 529, "", None, None, "overloaded"),
    ("qwen", 503, "throttled due to system capacity limits", "ModelServingError", None, "overloaded"),
    ("openai", 503, "", "server_is_overloaded", None, "overloaded"),
    ("any", 503, "down for maintenance", None, None, "server_error"),
    ("openai", 401, "", "invalid_api_key", None, "auth_invalid"),
    ("gemini", 400, "API key not valid. Please pass a valid API key.", None, None, "auth_invalid"),
    ("gemini", 400, "User location is not supported for the API use.", None, None, "region_denied"),
    ("any", 403, "error code: 1009", None, None, "region_denied"),
    ("any", 451, "", None, None, "region_denied"),
    ("openai", 403, "x", None, "permission_error", "permission"),
    ("openrouter", 403, "The model requires moderation. Your input was flagged", None, None, "content_filter"),
    ("deepseek", 400, "Content Exists Risk", None, "invalid_request_error", "content_filter"),
    ("anthropic", 400, "Output blocked by content filtering policy", None, None, "content_filter"),
    ("openai", 400, "x", "content_policy_violation", None, "content_filter"),
    ("openai", 404, "The model `gpt-x` does not exist", "model_not_found", None, "model_unavailable"),
    (
        "kimi",
        404,
        "Not found the model kimi-x or Permission denied",
        None,
        "resource_not_found_error",
        "model_unavailable",
    ),
    ("openrouter", 400, "foo/bar is not a valid model ID", 400, None, "model_unavailable"),
    ("lmstudio", 404, "No models loaded. Please load a model", None, None, "model_unavailable"),
    ("openai", 410, "This one has been retired", None, None, "model_unavailable"),
    ("anthropic", 404, "something else", None, "not_found_error", "model_unavailable"),
    ("openai", 404, "Invalid URL (POST /v1/chat)", None, "invalid_request_error", "wrong_url"),
    ("llama.cpp", 404, "File Not Found", 404, "not_found_error", "wrong_url"),
    ("any", 405, "nope", None, None, "wrong_url"),
    ("lmstudio", 200, "Unexpected endpoint or method. (POST /x)", None, None, "wrong_url"),
    ("nginx", 400, "The plain HTTP request was sent to HTTPS port", None, None, "wrong_url"),
    ("any", 408, "", None, None, "timeout"),
    ("any", 409, "", None, None, "conflict"),
    ("any", 504, "", None, None, "timeout"),
    ("any", 413, "", None, None, "payload_too_large"),
    ("kimi", 400, "Your request exceeded model token limit: 8192", None, None, "context_overflow"),
    ("llama.cpp", 500, "context size exceeded", None, "exceed_context_size_error", "context_overflow"),
    ("llama.cpp", 400, "x", None, "exceed_context_size_error", "context_overflow"),
    ("openai", 413, "x", "context_length_exceeded", None, "context_overflow"),
    (
        "openai",
        400,
        "An assistant message with 'tool_calls' must be followed by tool messages",
        None,
        None,
        "history_invalid",
    ),
    ("kimi", 400, "thinking is enabled but reasoning_content is missing in message 2", None, None, "history_invalid"),
    ("anthropic", 400, "Invalid `signature` in `thinking` block", None, None, "history_invalid"),
    ("anthropic", 400, "unexpected `tool_use_id` found in `tool_result` blocks", None, None, "history_invalid"),
    ("openai", 400, "x", "unsupported_parameter", None, "param_unsupported"),
    ("openai", 400, "Unrecognized request argument supplied: foo", None, None, "param_unsupported"),
    ("anthropic", 400, "foo: Extra inputs are not permitted", None, None, "param_unsupported"),
    ("ollama", 400, "registry.ollama.ai/library/x does not support tools", None, None, "capability_missing"),
    ("llama.cpp", 500, "tools param requires --jinja flag", None, "server_error", "capability_missing"),
    ("vllm", 400, '"auto" tool choice requires --enable-auto-tool-choice to be set', None, None, "capability_missing"),
    ("openrouter", 404, "No endpoints found that support tool use.", 404, None, "capability_missing"),
    ("groq", 400, "Failed to call a function", "tool_use_failed", None, "model_output_invalid"),
    ("ollama", 500, "error parsing tool call: raw='{'", None, None, "model_output_invalid"),
    ("qwen", 500, "Unterminated string starting at", "InternalError.Algo", None, "model_output_invalid"),
    ("qwen", 500, "inner failure", "InternalError.Algo", None, "server_error"),
    ("any", 422, "field required", None, None, "bad_request"),
    ("any", 400, "no idea", None, None, "bad_request"),
    ("any", 599, "", None, None, "server_error"),
    ("any", 418, "teapot", None, None, "unknown"),
    ("any", 302, "", None, None, "unknown"),
]


@pytest.mark.parametrize(("provider", "status", "message", "code", "type_", "class_"), HTTP)
def test_class_of_a_signal(provider, status, message, code, type_, class_):
    phase = "body" if status == 200 else "http"
    assert decided(provider, status, message, code=code, type_=type_, phase=phase).class_ == class_


@pytest.mark.parametrize(
    ("body", "status", "class_"),
    [
        ("<html>Not here</html>", 404, "wrong_url"),
        (None, 404, "wrong_url"),
        ({"detail": "Not Found"}, 404, "wrong_url"),
        ("404 page not found", 404, "wrong_url"),
        ("<html>Bad gateway</html>", 502, "server_error"),
        ("upstream connect error", 503, "server_error"),
        (None, 500, "server_error"),
        ("<html><h1>400 Bad Request</h1><hr>nginx</html>", 400, "protocol_error"),
        ({"error": {"message": "no such parameter"}}, 400, "bad_request"),
        ("<html>too big</html>", 413, "payload_too_large"),
        ({"error": "model 'x' not found"}, 404, "model_unavailable"),
    ],
)
def test_class_of_a_body_without_a_code(body, status, class_):
    assert decide(Failure("any", "http", status, body=body), 0.0).class_ == class_


@pytest.mark.parametrize(
    ("phase", "transport", "body", "class_"),
    [
        ("transport", "cancelled", None, "cancelled"),
        ("stream", "deadline", None, "cancelled"),
        ("transport", "protocol_error", None, "protocol_error"),
        ("transport", "cut", None, "stream_cut"),
        ("stream", "cut", None, "stream_cut"),
        ("stream", "timeout", None, "stream_cut"),
        ("transport", "odd", None, "unknown"),
        ("stall", "", None, "stalled"),
        ("stream", "", {"error": {"message": "boom"}}, "protocol_error"),
        ("stream", "", {"error": {"message": "prompt is too long"}}, "context_overflow"),
        ("stream", "", "<html>", "protocol_error"),
        ("body", "", "<html>rate limit, context window, model not found</html>", "protocol_error"),
        ("body", "", "the context window of a model that is not found", "protocol_error"),
        ("body", "", None, "protocol_error"),
        ("body", "", {"choices": None}, "protocol_error"),
        ("body", "", {"error": {"message": "boom"}}, "protocol_error"),
        ("body", "", {"error": {"message": "boom", "code": 402}}, "quota_exhausted"),
    ],
)
def test_class_of_what_is_not_an_http_error(phase, transport, body, class_):
    assert decide(Failure("any", phase, 200, body=body, transport=transport), 0.0).class_ == class_


def test_after_the_commit_point_every_failure_is_an_interruption():
    for phase, transport, status in (
        ("stream", "cut", 200),
        ("stall", "", 200),
        ("stream", "", 200),
        ("http", "", 400),
    ):
        failure = Failure(
            "any", phase, status, body={"error": {"type": "rate_limit_error"}}, transport=transport, committed=True
        )
        assert decide(failure, 0.0).request == "stream_interrupted"
    assert decide(Failure("any", "stream", transport="cancelled", committed=True), 0.0).request == "fail"


def test_a_rate_limit_after_the_commit_point_still_cools():
    decision = decided("openai", 200, type_="rate_limit_error", phase="stream", committed=True)
    assert (decision.class_, decision.key, decision.cooldown_s) == ("rate_limit", "cooldown_account_model", 60.0)


@pytest.mark.parametrize(
    ("class_", "seconds"),
    [("auth_invalid", DISABLED_S), ("permission", BLOCKED_S), ("region_denied", DISABLED_S), ("server_error", None)],
)
def test_how_long_it_is_held(class_, seconds):
    status = {"auth_invalid": 401, "permission": 403, "region_denied": 451, "server_error": 500}[class_]
    decision = decided("any", status)
    assert (decision.class_, decision.cooldown_s) == (class_, seconds)


def test_a_cooldown_takes_headers_strikes_and_chance_into_account():
    assert decided("any", 429, headers={"retry-after": "7"}).cooldown_s == 7.0
    assert decided("any", 429, "try again in 8s").cooldown_s == 8.0
    failure = Failure("any", "http", 429)
    assert decide(failure, 0.0, strikes=2, chance=0.5).cooldown_s == pytest.approx(240 * 1.05)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_a_5xx_rotates_counts_for_the_breaker_and_holds_nothing_against_a_key(status):
    decision = decided("any", status)
    assert (decision.key, decision.provider, decision.request) == ("none", "breaker_fail", "rotate_key")


@pytest.mark.parametrize(("status", "request_"), [(408, "retry_same_once_then_next_provider"), (504, "rotate_key")])
def test_a_timeout_says_by_its_status_what_comes_next(status, request_):
    assert decided("any", status).request == request_


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        ("Unrecognized request argument supplied: foo_bar", "foo_bar"),
        ("parameter.enable_thinking must be set to false for non-streaming calls", "enable_thinking"),
        ("`temperature` is deprecated for this model", "temperature"),
        ("tool_choice 'required' is incompatible with thinking enabled", "tool_choice"),
        ("foo.bar: Extra inputs are not permitted", "foo.bar"),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "max_tokens"),
    ],
)
def test_a_refused_parameter_is_named(message, parameter):
    decision = decided("any", 400, message)
    assert (decision.class_, decision.parameter) == ("param_unsupported", parameter)


def test_the_providers_own_word_for_the_parameter_comes_first():
    failure = Failure(
        "openai", "http", 400, body={"error": {"code": "unsupported_value", "param": "reasoning", "message": "x"}}
    )
    assert decide(failure, 0.0).parameter == "reasoning"
    assert decided("openai", 400, "x", code="unsupported_value").parameter is None
    assert decided("openai", 400, "no idea about temperature").parameter is None


@pytest.mark.parametrize(
    ("message", "room"),
    [
        ("input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease", 15_512),
        ("input length and `max_tokens` exceed context limit: 209136 + 20000 > 204648, decrease", None),
        (
            "max_tokens is too large: 9000. This model's maximum context length is 4096 tokens and your request has 500 input tokens",
            3596,
        ),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 16_384),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", 8192),
        ("prompt is too long: 208310 tokens > 200000 maximum", None),
    ],
)
def test_the_room_that_is_left_is_read_from_the_numbers(message, room):
    assert decided("any", 400, message).room == room


def test_the_numbers_of_an_overflow_allow_a_shorter_answer_first():
    message = "max_tokens is too large: 9000. This model's maximum context length is 4096 tokens and your request has 500 input tokens"
    assert decided("vllm", 400, message).request == "shrink_max_tokens_then_history"


# The tables


def test_every_class_that_a_row_names_is_in_the_table():
    assert {row.class_ for row in (*ROWS, UNKNOWN)} == set(CLASSES)


def test_the_tables_use_only_the_names_of_the_file():
    for row in CLASSES.values():
        assert row.key in KeyAction.__args__
        assert row.provider in ProviderAction.__args__
        assert row.request in RequestAction.__args__
        assert row.words
    assert {row.request for row in ROWS} - {None} <= set(RequestAction.__args__)


def test_no_row_stands_in_the_shadow_of_an_equal_one():
    assert len({str(row) for row in ROWS}) == len(ROWS)


def test_what_matches_nothing_is_unknown():
    signal = read_signal(provider="x", phase="http", transport="", status=299, body=None)
    assert classify(signal) is UNKNOWN


@pytest.mark.parametrize(
    ("name", "url", "expected"),
    [
        ("work", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("work", "https://api.moonshot.cn/v1", "kimi"),
        ("work", "https://api.deepseek.com", "deepseek"),
        ("work", "https://api.anthropic.com", "anthropic"),
        ("work", "https://api.openai.com/v1", "openai"),
        ("work", "https://openrouter.ai/api/v1", "openrouter"),
        ("local", "http://127.0.0.1:11434/v1", "ollama"),
        ("local", "http://127.0.0.1:8080/v1", "llama.cpp"),
        ("local", "http://box:8000/v1", "vllm"),
        ("local", "http://127.0.0.1:1234/v1", "lmstudio"),
        ("Qwen", None, "qwen"),
        ("Mine", "https://openai.com.example.org", "mine"),
        ("Mine", "http://[broken", "mine"),
        ("Mine", "http://host:99999999", "mine"),
    ],
)
def test_whose_codes_a_provider_speaks(name, url, expected):
    assert vendor(name, url) == expected
