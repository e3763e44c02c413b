"""Every panel is asked for real: a Prometheus that scrapes a working platform, and its Postgres as Grafana's role."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from wayline.testkit import until

from . import draw
from .conftest import rules
from .questions import Json, Question, choices, expand_promql, panels, questions, samples_of
from .trace_view import DrawnSpan, convert_fields, frame_to_trace, tree_of
from .watched_platform import DRAFTED_USD, JOBS, TOOLS, WAVES, WatchedPlatform

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(420),
]

PAID = (Decimal("0.01") + 2 * DRAFTED_USD) * WAVES
COSTS = ["Cost by model", "Cost by agent", "Cost by day", "Dearest traces"]
STRANGE = {"9" * 16: "5", "8" * 16: '{"n": 12345678901234567890, "nested": {"a": [1, null]}, "text": "\\u2028<b>"}'}
"""Attributes that are no object, and such as a browser would change."""


RARE = {
    "Approvals decided",
    "Cached and thought tokens per minute",
    "Complaints of connections",
    "Failed calls by code",
    "Garbage collections",
    "Requests that failed here",
    "Spans lost",
    "Tables mended",
    "Wait for an approval",
    "Waiting for a person, by age",
    "Waits for what was away or full",
}
"""Panels of what does not happen in the script."""


def usual(dashboard: Json) -> list[Question]:
    return [asked for asked in questions(dashboard) if asked.panel not in RARE]


def question(dashboard: Json, title: str) -> Question:
    [found] = [asked for asked in questions(dashboard) if asked.panel == title]
    return found


async def found(watched: WatchedPlatform, page: Json, title: str = "Jobs found", **values: str) -> list[dict[str, Any]]:
    [asked] = [one for one in questions(page, **values) if one.panel == title]
    return await watched.answer(asked)


async def drawn(watched: WatchedPlatform, page: Json, trace: str = "") -> list[DrawnSpan]:
    """What the trace panel shows."""
    [panel] = [panel for panel in panels(page) if panel["type"] == "traces"]
    rows = await found(watched, page, panel["title"], **({"trace": trace} if trace else {}))
    data = frame_to_trace(convert_fields(rows, panel["transformations"]))
    assert data is not None
    return tree_of(data)


async def trace_of(watched: WatchedPlatform, job: str) -> str:
    [row] = await watched.fetch(f"SELECT trace_id FROM tracing.jobs WHERE job_id = '{job}'")
    return row["trace_id"]


def edges(span: Json) -> set[tuple[str, str]]:
    below = [(span["span_id"], child["span_id"]) for child in span["children"]]
    return {*below, *(edge for child in span["children"] for edge in edges(child))}


def dollars(amounts: list[float]) -> Decimal:
    return sum((Decimal(str(amount)) for amount in amounts), Decimal(0)).quantize(Decimal("1e-9"))


async def test_every_metric_of_a_panel_is_in_a_live_scrape(watched: WatchedPlatform, dashboard: Json):
    exported = {sample.name for sample in await watched.scrape()}

    asked = {
        name
        for panel in usual(dashboard)
        if panel.promql
        for name in samples_of(expand_promql(panel.promql, watched.window, panel.variables))
    }
    assert asked - exported == set()


async def test_every_panel_has_data(watched: WatchedPlatform, dashboard: Json, binaries: Path):
    left: list[str] = []

    async def all_have() -> bool:
        left[:] = await watched.unanswered(usual(dashboard))
        return not left

    # Prometheus reads the services one after another.
    with suppress(AssertionError):
        await until(all_have, why="every panel has data")
    assert left == []


async def test_every_panel_over_postgres_has_data_for_grafanas_role(watched: WatchedPlatform, dashboard: Json):
    tables = [asked for asked in usual(dashboard) if asked.sql]

    assert await watched.unanswered(tables) == []


async def test_a_panel_of_what_never_happened_is_no_error(watched: WatchedPlatform, dashboard: Json):
    for asked in questions(dashboard):
        if asked.panel in RARE and (asked.sql or watched.prometheus is not None):
            rows = await watched.answer(asked)
            assert all(row.get("value", 0) == 0 for row in rows), (asked, rows)


async def test_no_panel_answers_what_is_no_number(watched: WatchedPlatform, dashboard: Json, binaries: Path):
    # From before the platform was there: nothing had happened then.
    early = replace(watched.window, start=watched.window.start - timedelta(minutes=10))
    for asked in questions(dashboard):
        for row in [] if asked.sql else await replace(watched, window=early).answer(asked):
            assert not math.isnan(row["value"]), asked


async def test_a_panel_with_a_misspelt_metric_fails_the_check(watched, dashboard: Json, binaries: Path):
    asked = [question for question in usual(dashboard) if question.promql]
    for name in {
        name for one in asked for name in samples_of(expand_promql(one.promql, watched.window, one.variables))
    }:
        spoilt = [replace(one, promql=re.sub(rf"\b{name}\b", f"{name}s", one.promql)) for one in asked]
        changed = [one for one in spoilt if one not in asked]

        assert await watched.unanswered(changed) == [f"{one.panel}: no data" for one in changed] != [], name


async def test_a_panel_with_a_misspelt_column_fails_the_check(watched: WatchedPlatform, overview: Json):
    tables = [asked for asked in usual(overview) if asked.sql]
    spoilt = [replace(asked, sql=asked.sql.replace("sum(cost_usd)", "sum(cost_euro)")) for asked in tables]

    refused = await watched.unanswered(spoilt)
    assert refused == [f'{title}: column "cost_euro" does not exist' for title in COSTS]


async def test_what_was_predicted_stands_beside_what_it_cost(watched: WatchedPlatform, cost: Json):
    [row] = await watched.answer(question(cost, "Actual to predicted by tier"))

    [job] = await watched.fetch(
        "SELECT DISTINCT estimated_cost_usd AS usd FROM tracing.jobs WHERE job_id LIKE 'drafts-%'"
    )
    assert (row["tier"], row["jobs"]) == ("standard", WAVES)
    assert dollars([row["actual"]]) == DRAFTED_USD * WAVES
    assert row["median"] == pytest.approx(float(DRAFTED_USD / job["usd"]))


@pytest.mark.parametrize("title", COSTS)
async def test_costs_in_tables_add_up_to_the_ledger(watched: WatchedPlatform, overview: Json, title: str):
    rows = await watched.answer(question(overview, title))

    [ledger] = await watched.fetch("SELECT sum(cost_usd) AS cost FROM tracing.ledger")
    assert dollars([row["cost"] for row in rows]) == ledger["cost"] == PAID


async def test_the_cost_that_prometheus_knows_is_the_ledgers(watched: WatchedPlatform, overview: Json, binaries: Path):
    spent = await watched.answer(question(overview, "Ledger"))
    unknown = await watched.answer(question(overview, "Calls of unknown price"))

    [ledger] = await watched.fetch(
        "SELECT sum(cost_usd) AS cost, count(*) FILTER (WHERE cost_usd IS NULL) AS unknown FROM tracing.ledger"
    )
    assert dollars([spent[-1]["value"]]) == ledger["cost"] == PAID
    assert unknown[-1]["value"] == ledger["unknown"] > 0


async def test_outcomes_and_dead_letters_are_those_of_the_script(
    watched: WatchedPlatform, overview: Json, binaries: Path
):
    outcomes = await watched.answer(question(overview, "Outcomes"))
    dead = await watched.answer(question(overview, "Dead letters"))

    assert {row["status"]: row["jobs"] for row in outcomes} == {"completed": 4 * WAVES, "failed": WAVES}
    assert dead[-1]["value"] == WAVES


async def test_each_tool_call_of_the_script_is_shown_once(watched: WatchedPlatform, overview: Json):
    rows = await watched.answer(question(overview, "Tool calls"))

    shown = Counter({row["metric"]: 0 for row in rows})
    for row in rows:
        shown[row["metric"]] += row["calls"]
    assert shown == {f"{tool} ok": WAVES for tool in TOOLS}


@pytest.mark.parametrize("title", ["Slowest traces", "Dearest traces"])
async def test_a_job_in_a_table_leads_to_its_trace(watched: WatchedPlatform, overview: Json, title: str):
    [panel] = [panel for panel in panels(overview) if panel["title"] == title]
    [column] = [column for column in panel["fieldConfig"]["overrides"] if column["matcher"]["options"] == "job"]
    [link] = column["properties"][0]["value"]
    rows = await watched.answer(question(overview, title))
    jobs = {row["job"] for row in rows}

    assert jobs == {f"{name}-{n}" for name in JOBS for n in range(WAVES)} - (
        set() if title == "Slowest traces" else {f"fails-{n}" for n in range(WAVES)}
    )
    assert link["url"].startswith("/d/wayline-traces?var-trace=${__data.fields.trace}&")
    known = {row["trace_id"] for row in await watched.fetch("SELECT trace_id FROM tracing.jobs")}
    assert {row["trace"] for row in rows} <= known


async def test_a_dead_letter_and_an_unknown_price_are_alerts(watched: WatchedPlatform, binaries: Path):
    async def alerting() -> bool:
        assert watched.prometheus is not None
        said = (await watched.prometheus.ask("alerts"))["alerts"]
        return {"WaylineDeadLetters", "WaylineUnknownPrice"} <= {alert["labels"]["alertname"] for alert in said}

    await until(alerting, why="Prometheus has evaluated the rules")


async def test_prometheus_has_read_every_rule(watched: WatchedPlatform, binaries: Path):
    assert watched.prometheus is not None
    groups = (await watched.prometheus.ask("rules"))["groups"]

    loaded = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert loaded.keys() == {rule["alert"] for rule in rules()}
    assert "err" not in loaded.values()


@pytest.mark.parametrize("job", ["pays-0", "asks-1", "fails-0"])
async def test_the_trace_panel_draws_the_tree_that_the_api_answers(watched: WatchedPlatform, traces: Json, job: str):
    spans = await drawn(watched, traces, await trace_of(watched, job))

    async with httpx2.AsyncClient(timeout=30) as client:
        tree = (await client.get(f"{watched.gateway}/v1/jobs/{job}/trace")).json()
    assert {(span.span_id, child.span_id) for span in spans for child in span.children} == edges(tree["root"])
    assert [span.span_id for span in spans if span.depth == 0] == [tree["root"]["span_id"]]
    assert spans[0].duration == pytest.approx(tree["root"]["duration_ms"] * 1_000)
    assert (("error", True) in spans[0].tags) == (job == "fails-0")
    assert {entry["name"] for entry in spans[0].logs} == {event["name"] for event in tree["root"]["events"]}


async def test_the_dollars_of_a_drawn_trace_are_the_ledgers(watched: WatchedPlatform, traces: Json):
    spans = await drawn(watched, traces, await trace_of(watched, "drafts-0"))

    dollars = [Decimal(value) for span in spans for key, value in span.tags if key == "cost_usd"]
    assert sum(dollars) == DRAFTED_USD


async def test_without_a_choice_the_newest_job_found_is_drawn(watched: WatchedPlatform, traces: Json):
    [first, *_] = await found(watched, traces)
    [of_first, *_] = await drawn(watched, traces, first["trace"])

    assert (await drawn(watched, traces))[0].span_id == of_first.span_id


async def test_spans_of_strange_attributes_and_lost_parents_are_drawn_whole(watched: WatchedPlatform, traces: Json):
    trace = await trace_of(watched, "asks-0")
    before = await drawn(watched, traces, trace)
    conn = await asyncpg.connect(watched.database.dsn)
    await conn.execute("SET wayline.tenant = '*'")
    put = """INSERT INTO tracing.spans (trace_id, span_id, start, tenant, parent_span_id, anchor, service, name, kind,
        duration_ms, status, attributes, seq) VALUES ($1, $2, now(), $3, $4, $5, 'their-app', 'theirs', 'client',
        NULL, 'unset', $6::jsonb, 0)"""
    try:
        for span_id, attributes in STRANGE.items():
            await conn.execute(put, trace, span_id, "default", "f" * 16, before[1].span_id, attributes)
        await conn.execute(put, trace, "7" * 16, "other-tenant", None, None, "{}")

        theirs = {span.span_id: span for span in await drawn(watched, traces, trace)}
    finally:
        await conn.execute("DELETE FROM tracing.spans WHERE service = 'their-app'")
        await conn.close()

    assert theirs.keys() == {span.span_id for span in before} | STRANGE.keys()
    assert all(theirs[span_id].depth == before[1].depth + 1 for span_id in STRANGE)
    assert theirs["9" * 16].tags == [("open", True)]
    assert dict(theirs["8" * 16].tags) == {**json.loads(STRANGE["8" * 16]), "n": "12345678901234567890", "open": True}


@pytest.mark.parametrize(
    ("chosen", "jobs"),
    [
        ({}, {"asks", "pays", "drafts", "stumbles", "fails"}),
        ({"status": "failed"}, {"fails"}),
        ({"model": "priced"}, {"drafts", "stumbles"}),
        ({"model": "-"}, set()),
        ({"agent": "nobody's"}, set()),
        ({"tenant": "default", "text": "LEASE"}, {"asks"}),
        ({"text": "100%_'; --"}, set()),
        ({"dollars": "0.00002"}, {"drafts", "stumbles"}),
        ({"dollars": "0.00004"}, set()),
        ({"seconds": "3600"}, set()),
        ({"seconds": "", "dollars": ""}, {"asks", "pays", "drafts", "stumbles", "fails"}),
    ],
    ids=lambda value: "-".join(sorted(value)) or "none",
)
async def test_the_chosen_values_narrow_the_jobs_found(
    watched: WatchedPlatform, traces: Json, chosen: dict[str, str], jobs: set[str]
):
    rows = await found(watched, traces, **chosen)

    assert {row["job"].partition("-")[0] for row in rows} == jobs
    assert len(rows) == len(jobs) * WAVES


async def test_dearest_slowest_and_failing_are_in_that_order(watched: WatchedPlatform, traces: Json):
    dearest = [row["cost"] for row in await found(watched, traces, "Dearest") if row["cost"] is not None]
    slowest = [row["seconds"] for row in await found(watched, traces, "Slowest")]
    [failing] = await found(watched, traces, "Most failing")

    assert dearest == sorted(dearest, reverse=True)
    assert slowest == sorted(slowest, reverse=True)
    assert (failing["jobs"], failing["job"]) == (WAVES, f"fails-{WAVES - 1}")


async def test_every_list_at_the_top_of_a_page_has_values(watched: WatchedPlatform, dashboard: Json):
    asked = list(choices(dashboard))

    values = {one.panel: [next(iter(row.values())) for row in await watched.answer(one)] for one in asked}
    expected = {"tenant": {"default"}, "agent": {"assistant", "stumbler"}}
    assert all(values[name] for name in values)
    assert {name: set(values[name]) for name in expected & values.keys()} == {
        name: expected[name] for name in expected & values.keys()
    }


async def test_the_jaeger_door_answers_what_grafanas_datasource_asks(watched: WatchedPlatform):
    trace = await trace_of(watched, "drafts-0")
    async with httpx2.AsyncClient(base_url=f"{watched.gateway}/jaeger/api", timeout=30) as client:

        async def ask(path: str, **parameters: Any) -> Any:
            answered = await client.get(path, params=parameters)
            assert answered.status_code == 200, answered.text
            return answered.json()["data"]

        services = await ask("/services")
        operations = await ask("/services/executor/operations")
        start, end = (round(at.timestamp() * 1e6) for at in (watched.window.start, watched.window.end))
        tags = json.dumps({"gen_ai.request.model": "priced"})
        window = {"start": start, "end": end, "limit": 20}
        found = await ask(
            "/traces", service="executor", operation="chat priced", tags=tags, minDuration="1us", **window
        )
        failed = await ask("/traces", service="executor", tags='{"error": "true"}', **window)
        [one] = await ask(f"/traces/{trace}")
        missing = await client.get(f"/traces/{'0' * 32}")

    assert {"executor", "tool-registry"} <= set(services)
    assert {"chat priced", "invoke_agent assistant", "execute_tool effects__pay_once"} <= set(operations)
    # Whatever happened since: dashboards are looked at while jobs run.
    assert {of["traceID"] for of in found} == {
        await trace_of(watched, f"{name}-{n}") for name in ("drafts", "stumbles") for n in range(WAVES)
    }
    # A call that failed is an error too, though another model went on.
    assert {of["traceID"] for of in failed} == {
        await trace_of(watched, f"{name}-{n}") for name in ("fails", "stumbles") for n in range(WAVES)
    }
    dollars = [tag["value"] for span in one["spans"] for tag in span["tags"] if tag["key"] == "wayline.cost_usd"]
    assert sum(map(Decimal, dollars)) == DRAFTED_USD
    assert missing.status_code == 404


async def test_a_search_for_spans_goes_on_where_its_page_ended(watched: WatchedPlatform):
    async with httpx2.AsyncClient(base_url=f"{watched.gateway}/v1", timeout=30) as client:
        asked = {"q": "PRICED", "agent": "assistant", "limit": 1, "since": watched.window.start.isoformat()}
        spans: list[Json] = []
        while True:
            page = (await client.get("/traces", params=asked)).json()
            spans += page["spans"]
            if page["next_cursor"] is None:
                break
            asked["cursor"] = page["next_cursor"]
        refused = await client.get("/traces", params={"cursor": "x"})

    assert [span["name"] for span in spans if span["name"].startswith("chat")] == ["chat priced"] * WAVES
    assert spans == sorted(spans, key=lambda span: span["start"], reverse=True)
    assert refused.status_code == 400


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_spans_of_the_sdks_exporter_join_the_tree_of_their_job(
    watched: WatchedPlatform, traces: Json, compression: Compression, monkeypatch: pytest.MonkeyPatch
):
    name = f"checkout {compression.value}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{watched.gateway}/otlp")
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(compression=compression)))
    tracer = provider.get_tracer("shop")

    def work() -> None:
        with tracer.start_as_current_span(name), tracer.start_as_current_span(f"ask {name}") as span:
            span.set_attribute("wayline.job_id", "asks-0")

    await asyncio.to_thread(work)

    async with httpx2.AsyncClient(timeout=30) as client:
        tree = (await client.get(f"{watched.gateway}/v1/jobs/asks-0/trace")).json()
    [theirs] = [child for child in tree["root"]["children"] if child["name"] == name]
    assert theirs["service"] == "shop"
    assert [child["name"] for child in theirs["children"]] == [f"ask {name}"]
    shown = {span.name: span for span in await drawn(watched, traces, await trace_of(watched, "asks-0"))}
    assert (shown[name].depth, shown[f"ask {name}"].depth) == (1, 2)


async def test_spans_in_json_are_taken_and_old_ones_counted(watched: WatchedPlatform):
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "by hand", "startTimeUnixNano": "1000000000"}
    async with httpx2.AsyncClient(base_url=f"{watched.gateway}/otlp", timeout=30) as client:
        told = await client.post("/v1/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
        other = await client.post("/v1/traces", content=b"{}", headers={"content-type": "text/plain"})

    assert told.status_code == 200
    assert told.headers["content-type"] == "application/json"
    assert told.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert other.status_code == 415


async def test_every_page_is_drawn_from_what_its_panels_answer(
    watched: WatchedPlatform, dashboard: Json, tmp_path: Path
):
    """With `WAYLINE_DRAW=FOLDER` the pages stay there, each with a picture where there is a Chromium."""
    file = Path(os.environ.get("WAYLINE_DRAW", tmp_path)) / f"{dashboard['uid']}.html"

    file.write_text(draw.page(dashboard, await draw.answers_of(watched, dashboard)))

    if "WAYLINE_DRAW" in os.environ:
        draw.photograph(file, dashboard)
    empty = file.read_text().count('class="none"')
    unusual = RARE if watched.prometheus else {panel["title"] for panel in panels(dashboard)}
    assert empty <= sum(panel["title"] in unusual for panel in panels(dashboard))
