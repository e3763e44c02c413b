"""Spans of a tenant's own programs: that tenant's alone, in the trees of its jobs, and never in the place of ours."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from wayline.contracts.errors import Refused
from wayline.contracts.forgetting import Erased, EraseFromTracing
from wayline.contracts.received_spans import ReceiveSpans, SpansReceived
from wayline.contracts.traces import GetTrace, Span, Trace
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.settings import Settings

from .conftest import Log, Start, TracingPlatform

THEIR_TRACE, OTHER_TRACE = "a" * 32, "b" * 32
QUICK = Settings(linger_ms=5, received_spans_hourly_max=40)


def batch(*spans: dict[str, Any], service: str = "shop", **resource: str) -> str:
    """Return spans as an exporter sends them."""
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    for key, value in {"service.name": service, **resource}.items():
        of_resource.resource.attributes.add(key=key).value.string_value = value
    scope = of_resource.scope_spans.add()
    for fields in spans:
        at = fields.get("at", datetime.now(UTC) - timedelta(seconds=5))
        begins = int(at.timestamp() * 1e6) * 1_000
        span = scope.spans.add(
            trace_id=bytes.fromhex(fields.get("trace", THEIR_TRACE)),
            span_id=bytes.fromhex(fields["span"] * 8),
            parent_span_id=bytes.fromhex(fields.get("parent", "") * 8),
            name=fields.get("name", "buy"),
            start_time_unix_nano=begins,
            end_time_unix_nano=begins + 1_000_000,
        )
        for key, value in fields.get("attributes", {}).items():
            span.attributes.add(key=key).value.string_value = value
        for trace, to in fields.get("links", ()):
            span.links.add(trace_id=bytes.fromhex(trace), span_id=bytes.fromhex(to))
    return b64encode(request.SerializeToString()).decode()


async def send(platform: TracingPlatform, *spans: dict[str, Any], tenant: str = "acme", **named: str) -> SpansReceived:
    return await platform.bus.ask(ReceiveSpans(tenant=tenant, otlp=batch(*spans, **named)), SpansReceived)


def places(span: Span, above: str | None = None) -> dict[str, str | None]:
    """Return the name of each span of a tree with the name of the one it hangs under."""
    found = {span.name: above}
    for child in span.children:
        found |= places(child, span.name)
    return found


async def test_their_traces_hang_under_the_job_they_name_or_link(platform: TracingPlatform, start: Start):
    await start(QUICK)
    await Log(platform.bus).whole()
    await Log(platform.bus, tenant="globex", job_id="theirs").whole()
    await platform.wait_until_read()
    before = await platform.trace("j1")
    root = before.root

    named = {"wayline.job_id": "j1"}
    asking = {"span": "02", "parent": "01", "name": "ask", "attributes": named}
    await send(platform, {"span": "01", "name": "app"}, asking)
    to_step = [(root.trace_id, root.children[0].span_id)]
    await send(platform, {"trace": OTHER_TRACE, "span": "03", "name": "tool", "links": to_step})
    await send(platform, {"trace": root.trace_id, "span": "04", "name": "called", "parent": "ee"})
    # Another tenant says that its spans are of this job, by every means there is.
    links = [(root.trace_id, root.span_id)]
    strange = {"attributes": named, "links": links, "name": "strange"}
    both = ({"trace": root.trace_id, "span": "05", **strange}, {"trace": "c" * 32, "span": "06", **strange})
    await send(platform, *both, tenant="globex")

    after = await platform.trace("j1")
    told = places(after.root)
    assert told.keys() - places(root).keys() == {"app", "ask", "tool", "called"}
    assert (told["app"], told["ask"]) == (root.name, "app")
    assert (told["tool"], told["called"]) == (root.children[0].name, root.name)
    assert after.totals.cost_usd == before.totals.cost_usd
    # Alone they are a trace of their own.
    alone = await platform.bus.ask(GetTrace(tenant="acme", trace_id=THEIR_TRACE), Trace)
    assert places(alone.root).keys() == {"app", "ask"}
    assert "strange" not in places((await platform.trace("theirs", tenant="globex")).root)


async def test_a_trace_that_joins_two_jobs_costs_each_no_more(platform: TracingPlatform, start: Start):
    await start(QUICK)
    jobs = ("j1", "j2")
    for job_id in jobs:
        await Log(platform.bus, job_id=job_id).whole()
    await platform.wait_until_read()
    before = [await platform.trace(job_id) for job_id in jobs]

    asking = [
        {"span": f"0{n}", "parent": "01", "name": f"ask {job}", "attributes": {"wayline.job_id": job}}
        for n, job in enumerate(jobs, start=2)
    ]
    await send(platform, {"span": "01", "parent": "ee", "name": "app"}, *asking)

    for job_id, was in zip(jobs, before, strict=True):
        now = await platform.trace(job_id)
        assert places(now.root).keys() - places(was.root).keys() == {"app", "ask j1", "ask j2"}
        assert (now.totals.cost_usd, now.totals.tokens) == (was.totals.cost_usd, was.totals.tokens)
        # The program's caller may send its spans elsewhere.
        assert now.totals.missing == was.totals.missing


async def test_a_jobs_own_trace_joins_no_other_job(platform: TracingPlatform, start: Start):
    await start(QUICK)
    for job_id in ("j1", "j2"):
        await Log(platform.bus, job_id=job_id).whole()
    await platform.wait_until_read()
    before = [await platform.trace(job_id) for job_id in ("j1", "j2")]

    # A program goes on with whatever trace its caller names: here with one that is a job's.
    told = {"trace": before[0].trace_id, "span": "01", "name": "told", "attributes": {"wayline.job_id": "j2"}}
    await send(platform, told)
    first, second = [await platform.trace(job_id) for job_id in ("j1", "j2")]
    await platform.bus.ask(EraseFromTracing(tenant="acme", user_id="nobody", job_ids=("j2",)), Erased)

    assert places(first.root).keys() - places(before[0].root).keys() == {"told"}
    assert (first.totals.cost_usd, second) == (before[0].totals.cost_usd, before[1])
    assert (await platform.trace("j1")).root == first.root


async def test_a_users_key_sees_no_trace_that_joins_another_users_job(platform: TracingPlatform, start: Start):
    await start(QUICK)
    for job_id, user_id in (("j1", "ann"), ("j2", "bob"), ("j3", "ann")):
        await Log(platform.bus, job_id=job_id).whole(user_id=user_id)
    await platform.wait_until_read()
    for trace, span, named in ((THEIR_TRACE, "01", ("j1", "j2")), (OTHER_TRACE, "05", ("j1", "j3"))):
        spans = [
            {
                "trace": trace,
                "span": f"{int(span) + n:02}",
                "name": f"{job} {span}",
                "attributes": {"wayline.job_id": job},
            }
            for n, job in enumerate(named)
        ]
        await send(platform, *spans)

    whole, anns = [
        places((await platform.bus.ask(GetTrace(tenant="acme", job_id="j1", user_id=user_id), Trace)).root).keys()
        for user_id in (None, "ann")
    ]

    assert whole - anns == {"j1 01", "j2 01"}
    assert {"j1 05", "j3 05"} <= anns


async def test_nothing_a_stranger_says_is_ours_to_set(platform: TracingPlatform, start: Start):
    await start(QUICK)
    said = {
        "wayline.cost.usd": "99",
        "wayline.tenant": "globex",
        "wayline.tool.effect": "once",
        "gen_ai.usage.input_tokens": "5",
        "mine": "x" * 5_000,
    }
    resource = {"wayline.tenant": "globex", "wayline.service": "router"}

    told = await send(platform, {"span": "01", "attributes": said}, service="executor", **resource)

    [row] = await platform.rows(
        "SELECT tenant, service, cost_usd, seq, attributes FROM spans WHERE service <> 'tracing'"
    )
    attributes = orjson.loads(row["attributes"]) if isinstance(row["attributes"], str) else row["attributes"]
    assert told == SpansReceived(stored=1)
    assert (row["tenant"], row["service"], row["cost_usd"], row["seq"]) == ("acme", "their router", None, 0)
    assert attributes.keys() == {"gen_ai.usage.input_tokens", "mine"}
    assert len(attributes["mine"]) < 3_000
    assert await platform.rows("SELECT 1 FROM ledger") == []


async def test_a_span_sent_under_our_ids_changes_none_of_ours(platform: TracingPlatform, start: Start):
    await start(QUICK)
    log = Log(platform.bus)
    await log.whole()
    await platform.wait_until_read()
    root = (await platform.trace("j1")).root

    body = ExportTraceServiceRequest()
    for at in (root.start, root.start + timedelta(seconds=1)):
        made = body.resource_spans.add().scope_spans.add().spans.add(trace_id=bytes.fromhex(root.trace_id))
        made.span_id, made.name = bytes.fromhex(root.span_id), "forged"
        made.start_time_unix_nano = made.end_time_unix_nano = int(at.timestamp() * 1e6) * 1_000
    otlp = b64encode(body.SerializeToString()).decode()
    await platform.bus.ask(ReceiveSpans(tenant="acme", otlp=otlp), SpansReceived)

    assert (await platform.trace("j1")).root == root
    [kept] = await platform.rows(f"SELECT name FROM spans WHERE span_id = '{root.span_id}' AND seq > 0")
    assert kept["name"] == root.name


async def test_spans_sent_again_are_stored_once(platform: TracingPlatform, start: Start):
    await start(QUICK)
    at = datetime.now(UTC) - timedelta(minutes=1)
    spans = [{"span": f"{n:02x}", "at": at, "attributes": {"wayline.job_id": "j1"}} for n in range(1, 6)]

    for _ in range(2):
        assert await send(platform, *spans) == SpansReceived(stored=5)

    assert len(await platform.rows("SELECT 1 FROM spans WHERE service <> 'tracing'")) == 5
    assert len(await platform.rows("SELECT 1 FROM joined_traces")) == 1


async def test_what_is_too_old_or_too_much_is_rejected_and_counted(platform: TracingPlatform, start: Start):
    await start(QUICK)
    old, ahead = datetime.now(UTC) - timedelta(days=9), datetime.now(UTC) + timedelta(days=2)

    late = await send(platform, {"span": "01", "at": old}, {"span": "02", "at": ahead}, {"span": "03"})
    much = await send(platform, *({"span": f"{n:02x}"} for n in range(1, 51)))
    none = await send(platform, {"span": "99"})
    others = await send(platform, {"span": "98"}, tenant="globex")

    assert (late.stored, late.rejected, bool(late.reason)) == (1, 2, True)
    assert (much.stored, much.rejected, bool(much.reason)) == (39, 11, True)
    assert (none.stored, none.rejected) == (0, 1)
    assert others.stored == 1


async def test_a_join_is_kept_as_long_as_its_newest_spans(platform: TracingPlatform, start: Start):
    await start(QUICK)
    tables = PostgresTables(platform.tables, spans_days=7)
    for trace, span in ((THEIR_TRACE, "01"), (OTHER_TRACE, "02")):
        await send(platform, {"trace": trace, "span": span, "attributes": {"wayline.job_id": "j1"}})
    async with platform.tables.system() as conn:
        await conn.execute("UPDATE joined_traces SET at = now() - interval '10 days'")
    await send(platform, {"trace": OTHER_TRACE, "span": "03", "attributes": {"wayline.job_id": "j1"}})

    await tables.forget(days=400)

    assert [row["trace_id"] for row in await platform.rows("SELECT trace_id FROM joined_traces")] == [OTHER_TRACE]


async def test_what_is_no_batch_of_spans_is_refused(platform: TracingPlatform, start: Start):
    await start(QUICK)
    for otlp in ("!", b64encode(b"\xff\xff").decode()):
        try:
            await platform.bus.ask(ReceiveSpans(tenant="acme", otlp=otlp), SpansReceived)
        except Refused as refused:
            assert refused.code == "invalid_spans"
        else:
            raise AssertionError(otlp)


async def test_joined_spans_go_when_their_job_is_forgotten(platform: TracingPlatform, start: Start):
    await start(QUICK)
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    await send(platform, {"span": "01", "attributes": {"wayline.job_id": "j1"}})

    await platform.bus.ask(EraseFromTracing(tenant="acme", user_id="nobody", job_ids=("j1",)), Erased)

    assert await platform.rows("SELECT 1 FROM spans WHERE service <> 'tracing'") == []
    assert await platform.rows("SELECT 1 FROM joined_traces") == []
