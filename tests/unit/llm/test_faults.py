"""A provider's troubles in our own terms."""

from datetime import UTC, datetime

import aiohttp
import httpx2
import orjson
import pytest

from wayline.llm.transport.connection_errors import from_transport
from wayline.llm.transport.provider_errors import from_response, from_stream, retry_after_s

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def error(message: str, **more: str) -> str:
    return orjson.dumps({"type": "error", "error": {"message": message, **more}}).decode()


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (401, error("invalid x-api-key", type="authentication_error"), "authentication", False),
        (403, error("not for you", type="permission_error"), "authentication", False),
        (404, error("model: claude-x", type="not_found_error"), "unknown_model", False),
        (400, error("no such model", code="model_not_found"), "unknown_model", False),
        (400, error("messages: at least one", type="invalid_request_error"), "invalid_request", False),
        (400, error("`thinking.budget_tokens` is too big", type="invalid_request_error"), "invalid_request", False),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "context_too_long", False),
        (400, error("too much", code="context_length_exceeded"), "context_too_long", False),
        (413, error("too large", type="request_too_large"), "context_too_long", False),
        (400, error("Your credit balance is too low to access the API"), "spend_cap", False),
        (429, error("slow down", type="rate_limit_error"), "rate_limited", True),
        (429, error("Rate limit reached. Add a payment method at /account/billing"), "rate_limited", True),
        (429, error("check your plan", type="insufficient_quota", code="insufficient_quota"), "spend_cap", False),
        (429, error("monthly spend limit reached", type="rate_limit_error"), "spend_cap", False),
        (402, error("pay", type="billing_error"), "spend_cap", False),
        (529, error("Overloaded", type="overloaded_error"), "overloaded", True),
        (503, error("Overloaded", type="overloaded_error"), "overloaded", True),
        (503, "upstream connect error", "server_error", True),
        (500, error("oops", type="api_error"), "server_error", True),
        (502, "<html>bad gateway</html>", "server_error", True),
        (418, "[]", "invalid_request", False),
    ],
)
def test_a_refusal_has_a_code_and_whether_waiting_helps(status, body, code, retryable):
    found = from_response(status, {}, body, now=NOW)

    assert (found.code, found.retryable, found.billable) == (code, retryable, False)
    assert str(status) in str(found)


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "2", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"Retry-After": "20"}, 20.0),
        ({"retry-after": "Sun, 22 Nov 2026 12:01:30 GMT", "Date": "Sun, 22 Nov 2026 12:01:00 GMT"}, 30.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sun, 99 Nov 2026 06:01:30 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers, after_s):
    assert retry_after_s(headers, now=NOW) == after_s
    assert from_response(429, headers, "", now=NOW).after_s == after_s


def test_a_spend_cap_is_not_waited_for_whatever_its_headers_say():
    assert from_response(429, {"retry-after": "5"}, error("no", code="insufficient_quota"), now=NOW).after_s is None


@pytest.mark.parametrize(
    ("body", "code", "retryable"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", True),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limited", True),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, "rate_limited", True),
        ({"code": "server_error", "message": "oops"}, "server_error", True),
        ({"code": "insufficient_quota", "message": "pay"}, "spend_cap", False),
        ({"code": "context_length_exceeded", "message": "long"}, "context_too_long", False),
        ({"code": "invalid_prompt", "message": "no"}, "invalid_request", False),
        ({"code": "bio_policy", "message": "no"}, "invalid_request", False),
        ({"message": "what"}, "server_error", True),
    ],
)
def test_an_error_within_a_stream_may_have_to_be_paid_for(body, code, retryable):
    found = from_stream(body)

    assert (found.code, found.retryable, found.billable) == (code, retryable, True)


def test_a_providers_word_not_to_retry_is_obeyed():
    assert from_response(500, {}, "", now=NOW).retryable
    assert not from_response(500, {"x-should-retry": "false"}, "", now=NOW).retryable


@pytest.mark.parametrize(
    ("cause", "wrapped", "code", "retryable", "billable"),
    [
        (aiohttp.ConnectionTimeoutError("slow"), httpx2.ConnectTimeout, "timeout", True, False),
        (aiohttp.SocketTimeoutError("silent"), httpx2.ReadTimeout, "timeout", True, True),
        (aiohttp.ServerDisconnectedError(), httpx2.ConnectTimeout, "connection", True, True),
        (aiohttp.ClientPayloadError("half"), httpx2.ReadError, "connection", True, True),
        (ValueError("no scheme"), httpx2.UnsupportedProtocol, "connection", False, False),
    ],
)
def test_a_lost_connection_is_judged_by_its_first_cause(cause, wrapped, code, retryable, billable):
    error = wrapped("gone")
    error.__cause__ = cause

    found = from_transport(error, answering=False)

    assert (found.code, found.retryable, found.billable) == (code, retryable, billable)


def test_a_cause_that_repeats_the_one_above_is_told_once():
    told = "Cannot connect to host a:1 ssl:default [Connect call failed ('a', 1)]"
    error = RuntimeError("Connection error.")
    error.__cause__ = httpx2.ConnectError(told)
    error.__cause__.__cause__ = OSError(told)
    error.__cause__.__cause__.__cause__ = ConnectionRefusedError(111, "Connect call failed ('a', 1)")

    found = from_transport(error, answering=False)

    assert str(found) == f"RuntimeError: Connection error.; ConnectError: {told}"


@pytest.mark.parametrize(
    ("status", "error", "code", "retryable"),
    [
        (400, {"message": "bad", "type": "invalid_request_error"}, "invalid_request", False),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, "context_too_long", False),
        (400, {"message": "The model `gpt-9` does not exist"}, "unknown_model", False),
        (401, {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}, "authentication", False),
        (402, {"message": "Insufficient Balance"}, "spend_cap", False),
        (403, {}, "authentication", False),
        (403, {"code": "insufficient_quota"}, "spend_cap", False),
        (404, {"message": "no such model", "type": "invalid_request_error"}, "unknown_model", False),
        (408, {}, "timeout", True),
        (409, {}, "server_error", True),
        (413, {}, "context_too_long", False),
        (429, {}, "rate_limited", True),
        (429, {"message": "You exceeded your current quota", "code": 429}, "rate_limited", True),
        (429, {"message": "You have reached your monthly spend limit."}, "spend_cap", False),
        (500, {"type": "invalid_request_error"}, "server_error", True),
        (502, {}, "server_error", True),
        (529, {}, "overloaded", True),
    ],
)
def test_a_status_and_an_error_object_make_one_code(status, error, code, retryable):
    found = from_response(status, {}, orjson.dumps({"error": error}))

    assert (found.code, found.retryable, found.billable) == (code, retryable, False)


def test_a_gateway_timeout_is_billable():
    error = from_response(504, {}, b"")

    assert (error.code, error.retryable, error.billable) == ("timeout", True, True)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>bad gateway</html>", b"[]", b'[{"error": {"message": "boom"}}]', b'{"error": "boom"}', b"\xff"],
)
def test_any_body_will_do(body):
    assert from_response(502, {}, body).code == "server_error"


def test_a_long_explanation_is_cut():
    assert len(str(from_response(500, {}, b"x" * 10_000))) < 600


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000",
        "The input token count (1052871) exceeds the maximum number of tokens allowed (1048576).",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 6000",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
        "the request exceeds the available context size. try increasing the context size",
        "Input is too long for requested model.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        "Prompt exceeds max length",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        "prompt token count of 130000 exceeds the limit of 128000",
    ],
)
def test_a_long_prompt_is_known_in_every_providers_words(words: str):
    assert from_response(400, {}, error(words), now=NOW).code == "context_too_long"


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for this model",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "messages.0.content: Field required",
    ],
)
def test_another_refusal_is_not_taken_for_a_long_prompt(words: str):
    assert from_response(400, {}, error(words), now=NOW).code == "invalid_request"
