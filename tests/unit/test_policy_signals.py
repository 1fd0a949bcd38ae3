"""Bodies of every shape say the same thing; no body at all can make a decision fail."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.router.actions import Phase
from lyma_server.router.policy import CLASSES, Failure, decide
from lyma_server.router.signals import read_signal

LIMITED = {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}


def signal_of(body, *, phase="http", status=400):
    return read_signal(provider="OpenAI", phase=phase, transport="", status=status, body=body)


@pytest.mark.parametrize(
    "body",
    [
        {"error": LIMITED},
        LIMITED,
        {"error": {"error": LIMITED}},
        {"errors": [LIMITED]},
        [{"error": LIMITED}],
        {"detail": LIMITED},
        json.dumps({"error": LIMITED}),
        "\n\n " + json.dumps({"error": LIMITED}),
        json.dumps({"error": LIMITED}).encode(),
        {"error": json.dumps({"error": LIMITED})},
        {"error": {"message": json.dumps(LIMITED)}},
        {"error": {"metadata": {"raw": json.dumps({"error": LIMITED})}}},
    ],
)
def test_an_error_says_the_same_in_every_shape(body):
    signal = signal_of(body)
    assert (signal.code, signal.type_) == ("rate_limit_exceeded", "rate_limit_error")
    assert "slow down" in signal.message
    assert signal.provider == "openai"


@pytest.mark.parametrize(
    ("body", "message", "shape"),
    [
        (None, "", "empty"),
        ("", "", "empty"),
        ("  \n", "", "empty"),
        ([], "", "empty"),
        ({}, "", "empty"),
        ({"error": "model not loaded"}, "model not loaded", "json"),
        ({"detail": "Not Found"}, "Not Found", "json"),
        ({"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, "field required", "json"),
        ("404 page not found", "404 page not found", "text"),
        ("{broken", "{broken", "text"),
        ("<!DOCTYPE html><title>502</title>", "<!DOCTYPE html><title>502</title>", "html"),
        (7, "", "json"),
        (True, "", "json"),
        ({"error": True, "code": True, "type": 5}, "", "json"),
        ("[" * 5000, "[" * 2000, "text"),
    ],
)
def test_what_a_body_says(body, message, shape):
    signal = signal_of(body)
    assert (signal.message, signal.shape) == (message, shape)


def test_deep_and_long_bodies_are_read_only_so_far():
    deep = {"message": "bottom"}
    for _ in range(50):
        deep = {"error": deep}
    assert signal_of(deep).message == ""
    assert len(signal_of({"message": "x" * 10_000}).message) == 2000
    assert signal_of([{"message": str(n)} for n in range(10)]).message == "0\n1\n2"


def test_the_parameter_is_the_first_one_named():
    assert signal_of({"error": {"param": "max_tokens", "detail": {"param": "other"}}}).parameter == "max_tokens"
    assert signal_of({"error": {"param": None, "detail": {"param": "other"}}}).parameter == "other"


@pytest.mark.parametrize(
    ("status", "body", "effective"),
    [
        (503, {"error": {"code": 429}}, 503),
        (200, {"error": {"code": 429}}, 429),
        (200, {"error": {"code": "503"}}, 503),
        (None, {"error": {"code": 402}}, 402),
        (200, {"error": {"code": 200}}, 0),
        (200, {"error": {"code": 600}}, 0),
        (200, {"error": {"code": "²²²"}}, 0),
        (200, {"error": {"code": 4000}}, 0),
        (200, {"error": {"code": "InternalError"}}, 500),
        (200, {"error": {"type": "overloaded_error"}}, 529),
        (200, {"error": {"type": "authentication_error"}}, 401),
        (200, {"error": {"type": "permission_error"}}, 403),
        (200, {"error": {"type": "not_found_error"}}, 404),
        (200, {"error": {"type": "request_too_large"}}, 413),
        (200, {"error": {"type": "rate_limit_error"}}, 429),
        (200, {"error": {"code": "Throttling.RateQuota"}}, 429),
        (200, {"error": {"type": "timeout_error"}}, 504),
        (200, {"error": {"type": "billing_error"}}, 402),
        (200, {"error": {"type": "invalid_request_error"}}, 400),
        (200, {"error": {"message": "boom"}}, 0),
        (301, {"error": {"code": 429}}, 301),
    ],
)
def test_an_error_inside_a_200_names_the_status_that_counts(status, body, effective):
    assert signal_of(body, status=status).status == effective


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ({"choices": [{"message": {"content": "hi"}}]}, "answer"),
        ({"choices": [{"delta": {"content": "hi"}}]}, "answer"),
        ({"type": "message", "content": []}, "answer"),
        ({"type": "message", "content": None}, "json"),
        ({"choices": [{"message": {}}], "error": {"message": "x"}}, "json"),
        ({"choices": [{"message": None}]}, "json"),
        ({"choices": [None]}, "json"),
        ({"choices": None}, "json"),
        ({"choices": []}, "json"),
        ([{"choices": []}], "json"),
    ],
)
def test_what_counts_as_an_answer(body, shape):
    assert signal_of(body, phase="body", status=200).shape == shape


def call(arguments):
    return {"function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("body", "class_", "request_"),
    [
        ({"finish_reason": "stop"}, "ok", "accept"),
        (None, "ok", "accept"),
        ({"tool_calls": None, "finish_reason": ["odd"]}, "ok", "accept"),
        ({"tool_calls": [call('{"a": 1}')], "finish_reason": "stop"}, "ok", "accept"),
        ({"tool_calls": [call({"a": 1})]}, "ok", "accept"),
        ({"tool_calls": [call(""), call("{}")]}, "ok", "accept_as_empty_object"),
        ({"tool_calls": [call(""), call('{"a": ')]}, "tool_args_invalid", "do_not_execute_reissue"),
        ({"tool_calls": [call("[1]")]}, "tool_args_invalid", "do_not_execute_reissue"),
        ({"tool_calls": [call(None)]}, "tool_args_invalid", "do_not_execute_reissue"),
        ({"tool_calls": [{"function": None}]}, "tool_args_invalid", "do_not_execute_reissue"),
        ({"tool_calls": ["odd"]}, "tool_args_invalid", "do_not_execute_reissue"),
        ({"finish_reason": "length"}, "truncated", "continue_answer"),
        ({"stop_reason": "max_tokens"}, "truncated", "continue_answer"),
        ({"tool_calls": [call("{}")], "finish_reason": "length"}, "truncated", "do_not_execute_reissue"),
        ({"finish_reason": "content_filter"}, "content_filter", "next_provider"),
        ({"stop_reason": "refusal"}, "content_filter", "next_provider"),
    ],
)
def test_how_a_whole_answer_is_judged(body, class_, request_):
    decision = decide(Failure("any", "semantic", 200, body=body, committed=True), 0.0)
    assert (decision.class_, decision.request) == (class_, request_)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "code",
                    "type",
                    "detail",
                    "param",
                    "choices",
                    "tool_calls",
                    "function",
                    "x",
                    "metadata",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)
headers = st.dictionaries(
    st.sampled_from(
        ["retry-after", "retry-after-ms", "date", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]
    ),
    st.text(max_size=12) | st.sampled_from(["0", "6m0s", "1e400", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "9" * 30]),
)
words = st.sampled_from(["try again in 5s", "context window", "model not found", "#token-limit"])


@given(
    provider=st.text(max_size=10) | st.sampled_from(["openai", "qwen", "dashscope", "kimi", "openrouter"]),
    phase=st.sampled_from(Phase.__args__),
    status=st.none() | st.integers(0, 999),
    headers=headers,
    body=json_values | st.binary(max_size=40) | words | json_values.map(lambda value: json.dumps(value, default=str)),
    transport=st.sampled_from(["", "connect_error", "timeout", "cut", "cancelled", "odd"]),
    committed=st.booleans(),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_no_failure_makes_a_decision_fail(provider, phase, status, headers, body, transport, committed, chance):
    failure = Failure(provider, phase, status, headers, body, transport, committed)
    decision = decide(failure, 1_790_000_000.0, strikes=3, chance=chance)
    assert decision.class_ in CLASSES
    assert decision.cooldown_s is None or 1.0 <= decision.cooldown_s <= 86_400.0
    assert decision == decide(failure, 1_790_000_000.0, strikes=3, chance=chance)


@pytest.mark.parametrize(
    "word", ["`tool_use ", "model tool_choice max_tokens ", "try again in ", "1h1m", "a" * 50 + " "]
)
def test_a_long_message_is_judged_in_a_moment(word):
    failure = Failure("any", "http", 400, body={"error": {"message": word * (100_000 // len(word))}})
    decide(failure, 0.0)  # compiles what it needs
    begun = time.process_time()
    decide(failure, 0.0)
    assert time.process_time() - begun < 0.1
