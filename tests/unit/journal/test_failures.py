"""Fingerprints of failures: one for each cause, whatever differs from job to job."""

import pytest

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage, ToolCall, ToolMessage
from wayline.contracts.jobs import Failure, Route
from wayline.journal import Job, failure_fingerprint, fingerprint
from wayline.testkit.jobs import job_with

ROUTE = Route(provider="p", model="m", tier="flash", reason="r")
CALLING = AssistantMessage(tool_calls=(ToolCall(call="1", tool="ship"),))


def failed(code: str, message: str, *messages, **more) -> Job:
    error = Failure(code=code, message=message)
    event = e.JobFailed(
        job_id="j", seq=9, at="2026-01-01T00:00:00Z", trace=e.SpanRef(trace_id="0", span_id="0"), error=error
    )
    return job_with(ended=event, route=ROUTE, messages=messages, **more)


def result(content: str, *, failed: bool = True) -> ToolMessage:
    return ToolMessage(call="1", tool="ship", content=content, failed=failed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timeout after 30.5 s", "timeout after 7 s"),
        ("no order 'A-17'", "no order 'B-2'"),
        ("https://a.example/1 is away", "https://b.example/2 is away"),
        ("job_0123456789abcdef is gone", "job_fedcba9876543210 is gone"),
        ("Key 8b0b6a52-4ff4-4b4e-9b6f-0a4c1f5a0e11 expired", "key 3f1f6a52-4ff4-4b4e-9b6f-0a4c1f5a0e11  expired"),
    ],
)
def test_what_differs_from_job_to_job_does_not_count(one, other):
    assert fingerprint("c", "t", one) == fingerprint("c", "t", other)


@pytest.mark.parametrize("other", [("d", "t", "m"), ("c", "u", "m"), ("c", "t", "n")])
def test_another_code_tool_or_message_is_another_cause(other):
    assert fingerprint("c", "t", "m") != fingerprint(*other)


def test_a_failed_tool_is_the_cause_whatever_the_model_said():
    one = failed("refused", "I would rather not", CALLING, result("printer 1 is on fire"), AssistantMessage(text="no"))
    other = failed("refused", "no way", CALLING, result("printer 2 is on fire"))

    assert (
        failure_fingerprint(one) == failure_fingerprint(other) == fingerprint("refused", "ship", "printer 1 is on fire")
    )


def test_without_a_failed_tool_the_model_is_named():
    job = failed("invalid_output", "no JSON", CALLING, result("fine", failed=False))

    assert failure_fingerprint(job) == fingerprint("invalid_output", "p/m", "no JSON")


def test_a_crash_loop_is_of_no_tool_and_no_model():
    assert failure_fingerprint(failed("crash_loop", "given up")) == fingerprint("crash_loop", "", "given up")


def test_a_job_that_has_not_failed_has_no_fingerprint():
    assert failure_fingerprint(Job()) is None
