"""A search for spans finds what a walk over all of them finds, page by page, and reads what an index finds first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest

from wayline.contracts.span_search import FoundSpan, ListSpanNames, SearchSpans, SpanName
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.errors import BadCursor
from wayline.tracing.handlers.find_spans import SpanSearch
from wayline.tracing.rows import Rows, SpanRow
from wayline.tracing.views import span_statements

from .conftest import TracingPlatform

SPANS, TRACES, QUESTIONS = 600, 60, 80
BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
AGENTS, USERS = ("support", "critic"), ("u1", "u2", None)
MODELS, TOOLS = ("small", "acme/large"), ("search", "refund")
JOBS = """INSERT INTO tracing.jobs (tenant, job_id, seq, trace_id, status, agent, user_id, steps, usage, tokens,
    partial, citations, created_at) VALUES ($1, $2, 1, $2, 'completed', $3, $4, 1, '{}', 1, false, '[]', now())"""


def span(rng: random.Random, number: int, tenant: str = "acme") -> SpanRow:
    """Return a random span."""
    attributes: dict[str, Any] = {"note": rng.choice(["Zürich", 'the "harbour"', "plain"])}
    model, tool = rng.choice([*MODELS, None]), rng.choice([*TOOLS, None])
    attributes |= {"gen_ai.request.model": model} if model else {}
    attributes |= {"gen_ai.tool.name": tool} if tool else {}
    status = rng.choice(["ok", "error", "unset", "open"])
    return SpanRow(
        trace_id=f"{rng.randrange(TRACES) + (0 if tenant == 'acme' else TRACES):032x}",
        span_id=f"{number:016x}",
        # Many begin at the same moment.
        start=BEGAN + timedelta(seconds=rng.randrange(200)),
        tenant=tenant,
        parent_span_id=None,
        anchor=None,
        service=rng.choice(["executor", "their-app"]),
        name=rng.choice(["chat small", "execute_tool search"]),
        kind="internal",
        duration_ms=None if status == "open" else rng.choice([1.0, 500.0, 2_000.0]),
        status=status,
        attributes=orjson.dumps(attributes).decode(),
        links=None,
        events=None,
        usage=None,
        cost_usd=rng.choice([None, Decimal("0.01"), Decimal("0.5")]),
        seq=1,
    )


Jobs = dict[str, tuple[str, str | None]]
"""The agent and the user of each trace's job; some traces are no job's."""


def questions(rng: random.Random) -> Iterator[SearchSpans]:
    """Yield random searches of one to three conditions."""
    choices: dict[str, list[Any]] = {
        "q": ["HARBOUR", 'the "har', "zürich", "chat", "00000", "nowhere"],
        "agent": ["support", "nobody"],
        "user_id": ["u1", "u2"],
        "model": list(MODELS),
        "tool": list(TOOLS),
        "service": ["executor", "their-app"],
        "name": ["chat small"],
        "status": ["ok", "error", "open"],
        "seconds_min": [0.5, 1.5],
        "seconds_max": [0.5],
        "cost_min": [Decimal("0.1")],
        "attributes": [{"note": "plain"}, {"note": "plain", "gen_ai.tool.name": "search"}],
        "since": [BEGAN + timedelta(seconds=90)],
        "until": [BEGAN + timedelta(seconds=120)],
    }
    for _ in range(QUESTIONS):
        asked = {name: rng.choice(choices[name]) for name in rng.sample(sorted(choices), rng.randint(1, 3))}
        yield SearchSpans(tenant="acme", limit=rng.choice([1, 7, 200]), **asked)


def meets(row: SpanRow, asked: SearchSpans, jobs: Jobs) -> bool:
    """Return whether a span meets every condition, each worked out by hand."""
    agent, user = jobs.get(row.trace_id, (None, None))
    attributes = orjson.loads(row.attributes or "{}")
    lasted = 18_000 if row.duration_ms is None else row.duration_ms / 1_000
    words = (row.name + " " + " ".join(attributes.values())).lower()
    q = (asked.q or "").lower()
    return (
        row.tenant == asked.tenant
        and asked.agent in (None, agent)
        and asked.user_id in (None, user)
        and asked.model in (None, attributes.get("gen_ai.request.model"))
        and asked.tool in (None, attributes.get("gen_ai.tool.name"))
        and asked.service in (None, row.service)
        and asked.name in (None, row.name)
        and asked.status in (None, row.status)
        and (q in words or row.trace_id.startswith(q) or row.span_id.startswith(q))
        and (asked.seconds_min is None or lasted >= asked.seconds_min)
        and (asked.seconds_max is None or lasted <= asked.seconds_max)
        and (asked.cost_min is None or (row.cost_usd is not None and row.cost_usd >= asked.cost_min))
        and asked.attributes.items() <= attributes.items()
        and (asked.since is None or row.start >= asked.since)
        and (asked.until is None or row.start < asked.until)
    )


async def fill(platform: TracingPlatform, rng: random.Random) -> tuple[list[SpanRow], Jobs]:
    """Store spans of two tenants and jobs of most traces."""
    tables = PostgresTables(platform.tables, spans_days=7)
    await tables.keep_spans()
    rows = [span(rng, number) for number in range(SPANS)]
    await tables.write(Rows(spans=[*rows, *(span(rng, SPANS + number, "globex") for number in range(50))]))
    jobs = {f"{n:032x}": (rng.choice(AGENTS), rng.choice(USERS)) for n in range(TRACES - 5)}
    async with platform.tables.system() as conn:
        await conn.executemany(JOBS, [("acme", trace, *of) for trace, of in jobs.items()])
    return rows, jobs


async def every_page(search: SpanSearch, asked: SearchSpans) -> list[FoundSpan]:
    found: list[FoundSpan] = []
    cursor = None
    while True:
        page = await search.search(asked.model_copy(update={"cursor": cursor}))
        assert len(page.spans) <= asked.limit
        found += page.spans
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_searches_find_what_a_walk_over_all_spans_finds(
    platform: TracingPlatform, monkeypatch: pytest.MonkeyPatch
):
    rng = random.Random(20)
    rows, jobs = await fill(platform, rng)
    search = SpanSearch(platform.tables)
    for number, asked in enumerate(questions(rng)):
        # A page also ends where it has looked at enough.
        monkeypatch.setattr(span_statements, "LOOKED_MAX", 90 if number % 2 else 50_000)
        met = [row for row in rows if meets(row, asked, jobs)]
        newest = sorted(met, key=lambda row: (row.start, row.trace_id, row.span_id), reverse=True)

        assert [one.span_id for one in await every_page(search, asked)] == [row.span_id for row in newest], asked
        each = await search.search(asked.model_copy(update={"trace_ids": True}))
        assert [one.trace_id for one in each.spans] == list(dict.fromkeys(row.trace_id for row in newest))[
            : asked.limit
        ]

    names = await search.list_names(ListSpanNames(tenant="globex"))
    assert sum(name.spans for name in names.names) == 50
    mine = await search.list_names(ListSpanNames(tenant="acme", user_id="u1"))
    assert {type(name) for name in mine.names} == {SpanName}
    assert sum(name.spans for name in mine.names) == sum(jobs.get(row.trace_id, "..")[1] == "u1" for row in rows)


@pytest.mark.parametrize("cursor", ["", "x", "bm90IGEgcGxhY2U=", "MjAyNi0xMS0yNlQwMDowMDowMCBhIGI="])
def test_a_cursor_that_no_page_gave_is_refused(cursor: str):
    with pytest.raises(BadCursor):
        span_statements.after_cursor(cursor)


async def test_the_newest_spans_of_a_tenant_come_from_the_index(platform: TracingPlatform):
    tables = PostgresTables(platform.tables, spans_days=7)
    await tables.keep_spans()
    rng = random.Random(1)
    await tables.write(Rows(spans=[span(rng, n, "acme" if n % 100 == 0 else "globex") for n in range(20_000)]))
    later = (BEGAN + timedelta(seconds=100), "0" * 32, "0" * 16)

    for after in (None, later):
        said = span_statements.statements(SearchSpans(tenant="acme", limit=20), after)
        async with platform.tables.tenant("acme") as conn:
            plan = "\n".join(row[0] for row in await conn.fetch(f"EXPLAIN {said.page}", *said.arguments))
        assert "_tenant_start_idx" in plan
        assert "Seq Scan on spans" not in plan
