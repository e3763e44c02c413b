"""Why a provider refused, in our words, and when it may be asked again."""

from datetime import UTC, datetime

import orjson
import pytest

from wayline.llm.refusal import refused, retry_after_s

NOW = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "error", "code", "retryable"),
    [
        (400, {"message": "bad", "type": "invalid_request_error"}, "invalid_request", False),
        (400, {"code": "context_length_exceeded"}, "context_too_long", False),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, "context_too_long", False),
        (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, "context_too_long", False),
        (400, {"message": "no", "code": "model_not_found"}, "unknown_model", False),
        (401, {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}, "authentication", False),
        (402, {"message": "Insufficient Balance"}, "spend_cap", False),
        (403, {}, "authentication", False),
        (404, {"message": "no such model", "type": "invalid_request_error"}, "unknown_model", False),
        (408, {}, "timeout", True),
        (409, {}, "server_error", True),
        (413, {}, "invalid_request", False),
        (418, {}, "invalid_request", False),
        (429, {}, "rate_limited", True),
        (429, {"message": "You exceeded your current quota", "code": 429}, "rate_limited", True),
        (429, {"message": "exceeded your current quota", "code": "insufficient_quota"}, "spend_cap", False),
        (429, {"message": "You have reached your monthly spend limit."}, "spend_cap", False),
        (500, {"type": "invalid_request_error"}, "server_error", True),
        (500, {"message": "boom"}, "server_error", True),
        (502, {}, "server_error", True),
        (503, {"type": "overloaded_error"}, "overloaded", True),
        (504, {}, "server_error", True),
        (529, {}, "overloaded", True),
    ],
)
def test_a_status_and_an_error_make_one_code(status, error, code, retryable):
    said = refused(status, {}, orjson.dumps({"error": error}))

    assert (said.code, said.retryable, said.billable) == (code, retryable, False)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>bad gateway</html>", b"[]", b'[{"error": {"message": "boom"}}]', b'{"error": "boom"}', b"\xff"],
)
def test_any_body_will_do(body):
    assert refused(502, {}, body).code == "server_error"


def test_a_long_explanation_is_cut():
    assert len(str(refused(500, {}, b"x" * 10_000))) < 600


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"Retry-After": "20", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "Sun, 22 Nov 2026 06:01:30 GMT"}, 90.0),
        ({"Retry-After": "Sun, 22 Nov 2026 06:01:30 GMT", "Date": "Sun, 22 Nov 2026 06:01:00 GMT"}, 30.0),
        ({"Retry-After": "Sun, 22 Nov 2026 05:00:00 GMT"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "Sun, 99 Nov 2026 06:01:30 GMT"}, None),
    ],
)
def test_the_time_to_come_back_is_read_from_seconds_or_a_date(headers, after_s):
    assert retry_after_s(headers, now=NOW) == after_s
