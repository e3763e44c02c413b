"""What an exporter sends is kept within limits."""

from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from wayline.tracing.consume.exported_spans import ATTRIBUTES_MAX, LIST_MAX, TEXT_MAX, read_spans
from wayline.tracing.errors import NotSpans
from wayline.tracing.rows import NOBODY, SpanRow


def text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def read(span: OtlpSpan) -> list[SpanRow]:
    resource = Resource(attributes=[KeyValue(key="service.name", value=text("tool_registry"))])
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=[span])])]
    )
    return read_spans(request.SerializeToString())


def span(**fields: object) -> OtlpSpan:
    known = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "name": "n", "kind": 3}
    return OtlpSpan(**{**known, **fields})  # pyright: ignore[reportArgumentType]


def test_a_span_is_read_as_it_was_sent():
    (row,) = read(
        span(
            parent_span_id=b"p" * 8,
            trace_state="other=1,wayline=0123456789abcdef",
            start_time_unix_nano=1_800_000_000_000_000_000,
            end_time_unix_nano=1_800_000_000_012_500_000,
            status=Status(code=2, message="no luck"),  # pyright: ignore[reportArgumentType]
            attributes=[
                KeyValue(key="gen_ai.usage.input_tokens", value=AnyValue(int_value=7)),
                KeyValue(key="wayline.cost.usd", value=text("0.000000001")),
                KeyValue(key="wayline.tenant", value=text("acme")),
            ],
        )
    )

    assert row == SpanRow(
        trace_id=(b"t" * 16).hex(),
        span_id=(b"s" * 8).hex(),
        start=datetime.fromtimestamp(1_800_000_000, UTC),
        tenant="acme",
        parent_span_id=(b"p" * 8).hex(),
        anchor="0123456789abcdef",
        service="tool-registry",
        name="n",
        kind="client",
        duration_ms=12.5,
        status="error",
        attributes=row.attributes,
        links=None,
        events=None,
        usage='{"input":7}',
        cost_usd=Decimal("0.000000001"),
        seq=0,
    )


def test_attributes_are_cut_in_number_and_in_size():
    many = [KeyValue(key=f"k{i}", value=text("x" * 10_000)) for i in range(500)]
    long = KeyValue(key="a", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=i) for i in range(500)])))

    (row,) = read(span(attributes=[long, *many]))

    kept = orjson.loads(row.attributes or "")
    assert len(kept) == ATTRIBUTES_MAX
    assert kept["a"] == list(range(LIST_MAX))
    assert kept["k0"] == "x" * TEXT_MAX + "…"


def test_text_that_postgres_would_refuse_is_made_harmless():
    (row,) = read(span(name="a\x00b", attributes=[KeyValue(key="k\x00", value=text("v\x00"))]))

    assert row.name == "a\ufffdb"
    assert orjson.loads(row.attributes or "") == {"k\ufffd": "v\ufffd"}


@pytest.mark.parametrize("claimed", ["Not A Tenant", NOBODY, "*", ""])
def test_a_span_of_an_invalid_tenant_belongs_to_no_tenant(claimed: str):
    (row,) = read(span(attributes=[KeyValue(key="wayline.tenant", value=text(claimed))]))

    assert row.tenant == NOBODY


def test_spans_without_proper_ids_are_left_out():
    assert read(span(trace_id=b"short")) == []


def test_bytes_that_are_no_otlp_are_refused():
    with pytest.raises(NotSpans):
        read_spans(b"\xff\xff\xff")


def test_an_empty_attribute_keeps_its_kind():
    attributes = {
        "text": text("a"),
        "empty": text(""),
        "number": AnyValue(int_value=0),
        "no": AnyValue(bool_value=False),
    }

    (row,) = read(
        span(attributes=[KeyValue(key=key, value=value) for key, value in (attributes | {"none": AnyValue()}).items()])
    )

    assert orjson.loads(row.attributes or "") == {"text": "a", "empty": "", "number": 0, "no": False, "none": None}


@pytest.mark.parametrize("number", [-100, -1, 6, 2**31 - 1])
def test_kinds_and_codes_that_nobody_has_named_are_none(number: int):
    made = span()
    made.kind = made.status.code = number  # pyright: ignore[reportAttributeAccessIssue]

    [row] = read(made)

    assert (row.kind, row.status) == ("internal", "unset")
