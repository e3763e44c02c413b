"""The variables that every OpenTelemetry SDK reads say what is recorded, and under which name."""

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.contracts import ids
from wayline.contracts.errors import WrongSetting
from wayline.telemetry import JobTrace, Telemetry, carried, remote

SHARE = "0.25"
JOBS = [f"job-{number}" for number in range(200)]


def recorder(service: str = "router") -> tuple[Telemetry, InMemorySpanExporter]:
    seen = InMemorySpanExporter()
    return Telemetry(service, SimpleSpanProcessor(seen)), seen


def test_resource_attributes_and_service_name_are_the_users(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,service.namespace=shop")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "agents")
    telemetry, _ = recorder("router")

    known = telemetry.provider.resource.attributes

    assert (known["service.name"], known["wayline.service"]) == ("agents", "router")
    assert (known["deployment.environment.name"], known["service.namespace"]) == ("prod", "shop")


def test_without_variables_a_service_has_its_own_name():
    telemetry, _ = recorder("router")

    assert telemetry.provider.resource.attributes["service.name"] == "router"


def taken(telemetry: Telemetry, seen: InMemorySpanExporter) -> set[str]:
    """Return the jobs whose handling a service records."""
    seen.clear()
    for job in JOBS:
        with telemetry.handling("jobs.run.{tenant}", None, job_trace=JobTrace.of("acme", job)):
            pass
    traces = {f"{span.context.trace_id:032x}" for span in seen.get_finished_spans()}
    return {job for job in JOBS if ids.trace_id("acme", job) in traces}


@pytest.mark.parametrize("sampler", ["traceidratio", "parentbased_traceidratio"])
def test_all_services_take_the_same_share_of_jobs(monkeypatch: pytest.MonkeyPatch, sampler: str):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", SHARE)

    by_router, by_executor = (taken(*recorder(service)) for service in ("router", "executor"))

    assert by_router == by_executor
    assert 0 < len(by_router) < len(JOBS) / 2


@pytest.mark.parametrize("sampler", ["always_on", "parentbased_always_on", ""])
def test_by_default_every_job_is_taken(monkeypatch: pytest.MonkeyPatch, sampler: str):
    if sampler:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)

    assert taken(*recorder()) == set(JOBS)


def test_headers_from_an_unsampled_span_are_unsampled_and_keep_its_anchor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    telemetry, seen = recorder()
    job_trace = JobTrace.of("acme", "j1")

    with telemetry.handling("jobs.run.{tenant}", None, job_trace=job_trace):
        headers = carried()

    sender = remote(headers)
    assert sender is not None and not sender.trace_flags.sampled
    assert f"{sender.trace_id:032x}" == job_trace.trace_id
    assert sender.trace_state.get("wayline") == job_trace.span_id
    assert seen.get_finished_spans() == ()


def test_a_sender_that_was_not_taken_is_followed():
    telemetry, seen = recorder()
    job_trace = JobTrace.of("acme", "j1")
    sender = {"traceparent": f"00-{job_trace.trace_id}-{'ab' * 8}-00", "tracestate": f"wayline={job_trace.span_id}"}

    with telemetry.handling("tools.call.{tenant}", sender, job_trace=job_trace):
        pass

    assert seen.get_finished_spans() == ()


def test_a_disabled_sdk_records_nothing_and_passes_the_jobs_span_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    telemetry, seen = recorder()
    job_trace = JobTrace.of("acme", "j1")

    with (
        telemetry.handling("jobs.run.{tenant}", job_trace.headers(), job_trace=job_trace),
        telemetry.calling("tools/call x") as span,
    ):
        span.set_attribute("a", 1)
        headers = carried()

    assert headers == job_trace.headers()
    assert seen.get_finished_spans() == ()


def test_a_limit_that_is_no_number_is_a_named_wrong_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "many")

    with pytest.raises(WrongSetting, match="OTEL_SPAN_EVENT_COUNT_LIMIT"):
        recorder()
