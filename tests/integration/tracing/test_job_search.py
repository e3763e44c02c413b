"""Every filter and order of jobs finds what a walk over all of them finds, and an index serves what is asked most."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, get_args

import asyncpg
import orjson
import pytest
import pytest_asyncio

from wayline.contracts.jobs import Status
from wayline.contracts.overview import GetJobsOverview
from wayline.contracts.traces import JobOrder, JobPage, ListJobs
from wayline.store import Store
from wayline.testkit import Platform, until
from wayline.testkit.walks import length
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.errors import BadCursor
from wayline.tracing.handlers.answers import ViewHandlers
from wayline.tracing.job_words import job_words
from wayline.tracing.rows import JobRow, Rows, StepRow
from wayline.tracing.views import job_counts
from wayline.tracing.views.job_counts import counts_statement
from wayline.tracing.views.job_search import page_statements
from wayline.tracing.views.spent_lately import QUICK_S, REST_MAX_S, SpentSums

from .conftest import TracingPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that changes or deletes jobs."""

JOBS, QUESTIONS = length(10_000, short=1_200), 150
"""Ten thousand jobs in `make faults`."""
WALK_MAX_S = 900
BEGAN = datetime(2026, 5, 1, tzinfo=UTC)
NAMES = ("refund", "invoice", "harbour", "Zürich", "退款政策", "o'clock", "50%_off")
AGENTS, TOOLS, TAGS = ("support", "critic", "scout"), ("search", "refund", "mail"), ("team:a", "team:b", "case:7")
CITED = ("tides", "it's a \\ name")
MODELS = (("openai", "small"), ("openrouter", "acme/large"), ("local", "small"))
ENDED = {"completed", "failed", "cancelled"}


def job(rng: random.Random, number: int, tenant: str = "acme") -> tuple[JobRow, list[StepRow]]:
    """Return a random job and its steps."""
    status = rng.choice([status.value for status in Status])
    ended = status in ENDED
    created = BEGAN + timedelta(seconds=rng.randrange(50_000))
    said = " ".join(rng.choices(NAMES, k=rng.randrange(3)))
    answer = " ".join(rng.choices(NAMES, k=2)) if status == "completed" else None
    error = rng.choice(NAMES) if status == "failed" else None
    tags, tools = rng.sample(TAGS, rng.randrange(3)), rng.sample(TOOLS, rng.randrange(3))
    provider, model = rng.choice([*MODELS, (None, None)])
    job_id = f"job_{number:06x}"
    beyond: dict[str, Any] = {}
    if rng.random() < 0.2:
        beyond["parent"] = {"job_id": f"job_{rng.randrange(40):06x}", "step": 1, "call": "c1", "depth": 1}
    if rng.random() < 0.1:
        beyond["origin"] = {"job_id": f"job_{rng.randrange(40):06x}", "seq": 3, "hash": "h"}
    if number % 5 == 0:
        beyond["agent_label"] = "candidate"
    cited = [{"document_id": rng.choice(CITED), "chunk_id": f"c{number % 2}", "document": "d", "quote": "q"}]
    cited = cited if status == "completed" and rng.random() < 0.5 else []
    named = {"tags": tags, "tools": tools, "cited": [one["document_id"] for one in cited]}
    # Those of a version before have no label in their words.
    label = beyond.get("agent_label") if number % 2 else None
    words = job_words(tenant, job_id, [said, answer, error], label=label, **named) if ended else None
    waiting = {"why": rng.choice(["approval", "budget"]), "wait_id": "w"} if status == "parked" else None
    row = JobRow(
        tenant=tenant,
        job_id=job_id,
        seq=3,
        trace_id=f"{number:032x}",
        status=status,
        agent=rng.choice(AGENTS),
        agent_version=1 + number % 3,
        session_id=rng.choice(["s1", None]),
        user_id=rng.choice(["u1", "u2", None]),
        provider=provider,
        model=model,
        tier=rng.choice(["flash", "standard", None]),
        route_reason="r",
        estimated_cost_usd=None,
        steps=1,
        usage="{}",
        tokens=0,
        cost_usd=rng.choice([None, Decimal(rng.randrange(40)) / 100]),
        costs="{}",
        answer=answer,
        partial=False,
        reason=None,
        citations=orjson.dumps(cited).decode(),
        error_code="crash_loop" if status == "failed" else None,
        error_message=error,
        waiting_for=None if waiting is None else orjson.dumps(waiting).decode(),
        created_at=created,
        ended_at=created + timedelta(seconds=rng.randrange(900)) if ended else None,
        input=said,
        fingerprint=None,
        schedule=None,
        lane=rng.choice(["interactive", "batch"]),
        beyond=orjson.dumps(beyond).decode(),
        tags=list(tags) or None,
        words=words,
    )
    calls = orjson.dumps([{"call": "c", "tool": tool} for tool in tools]).decode()
    step = StepRow(tenant, job_id, 1, 3, created, "", None, "{}", None, calls, None, "success")
    return row, [step] if tools else []


def conditions(rng: random.Random, now: datetime) -> Iterator[tuple[dict[str, Any], Callable[[JobRow, Any], bool]]]:
    """Yield every kind of condition, with what a job must be to meet it."""
    status, agent, name, tool = rng.choice(list(Status)), rng.choice(AGENTS), rng.choice(NAMES), rng.choice(TOOLS)
    several, tag, since = (Status.FAILED, Status.PARKED), rng.choice(TAGS), BEGAN + timedelta(seconds=20_000)
    dollars, seconds, other = Decimal(rng.randrange(40)) / 100, rng.randrange(900), f"job_{rng.randrange(40):06x}"
    document, (provider, model) = rng.choice(CITED), rng.choice(MODELS)
    yield {"status": status}, lambda row, _: row.status == status
    yield {"statuses": several}, lambda row, _: row.status in several
    yield {"agent": agent}, lambda row, _: row.agent == agent
    yield {"agents": AGENTS[:2]}, lambda row, _: row.agent in AGENTS[:2]
    yield {"q": name}, lambda row, _: name in " ".join(filter(None, [row.input, row.answer, row.error_message]))
    yield {"q": other[:8]}, lambda row, _: row.job_id.startswith(other[:8])
    yield {"tags": (tag,)}, lambda row, _: tag in (row.tags or ())
    yield {"tool": tool}, lambda row, tools: tool in tools
    yield {"user_id": "u1"}, lambda row, _: row.user_id == "u1"
    yield {"session_id": "s1"}, lambda row, _: row.session_id == "s1"
    yield {"model": model}, lambda row, _: row.model == model
    yield {"model": f"{provider}/{model}"}, lambda row, _: (row.provider, row.model) == (provider, model)
    yield {"tier": "flash"}, lambda row, _: row.tier == "flash"
    yield {"lane": "batch"}, lambda row, _: row.lane == "batch"
    yield {"error_code": "crash_loop"}, lambda row, _: row.error_code == "crash_loop"
    yield {"waiting_for": ("approval",)}, lambda row, _: '"approval"' in (row.waiting_for or "")
    yield {"parent": "none"}, lambda row, _: "parent" not in orjson.loads(row.beyond or "{}")
    yield {"parent": other}, lambda row, _: orjson.loads(row.beyond or "{}").get("parent", {}).get("job_id") == other
    yield {"origin": other}, lambda row, _: orjson.loads(row.beyond or "{}").get("origin", {}).get("job_id") == other
    yield {"cites": document}, lambda row, _: document in cited_by(row)
    passage = {"cites": document, "cites_chunk": "c1"}
    yield passage, lambda row, _: document in cited_by(row) and '"c1"' in str(row.citations)
    yield {"agent_version": 2}, lambda row, _: row.agent_version == 2
    yield {"agent_label": "candidate"}, lambda row, _: '"candidate"' in (row.beyond or "")
    yield {"since": since}, lambda row, _: row.created_at >= since
    yield {"until": since}, lambda row, _: row.created_at < since
    yield {"cost_min": dollars}, lambda row, _: row.cost_usd is not None and row.cost_usd >= dollars
    yield {"cost_max": dollars}, lambda row, _: row.cost_usd is not None and row.cost_usd <= dollars
    yield {"seconds_min": seconds}, lambda row, _: took(row, now) >= seconds
    yield {"seconds_max": seconds}, lambda row, _: took(row, now) <= seconds


def cited_by(row: JobRow) -> list[str]:
    return [one["document_id"] for one in orjson.loads(str(row.citations))]


def took(row: JobRow, now: datetime) -> float:
    return ((row.ended_at or now) - row.created_at).total_seconds()


def ordered(rows: list[JobRow], sort: str) -> list[str]:
    """Return the ids in the order asked for."""
    newest = sorted(rows, key=lambda row: (row.created_at, row.job_id), reverse=True)
    if sort == "oldest":
        newest.reverse()
    if sort == "dearest":
        newest.sort(key=lambda row: -1 if row.cost_usd is None else row.cost_usd, reverse=True)
    if sort == "slowest":
        newest = [row for row in newest if row.ended_at]
        newest.sort(key=lambda row: took(row, row.created_at), reverse=True)
    return [row.job_id for row in newest]


async def every_page(views: ViewHandlers, asked: ListJobs) -> list[str]:
    found: list[str] = []
    while True:
        page = await views.list_jobs(asked)
        found += [one.job_id for one in page.jobs]
        if page.next_cursor is None:
            return found
        asked = asked.model_copy(update={"cursor": page.next_cursor})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tables(module_platform: Platform) -> Store:
    return await module_platform.store("tracing")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stored(tables: Store) -> list[tuple[JobRow, list[str]]]:
    """The jobs that all tests ask for, none of which changes them."""
    return await store_jobs(tables)


async def store_jobs(store: Store) -> list[tuple[JobRow, list[str]]]:
    """Store random jobs of one tenant, among those of another."""
    rng = random.Random(7)
    mine = [job(rng, number) for number in range(JOBS)]
    theirs = [job(rng, number, tenant="globex") for number in range(200)]
    tables = PostgresTables(store, spans_days=7)
    await tables.keep_spans()
    await tables.write(
        Rows(jobs=[row for row, _ in mine + theirs], steps=[step for _, steps in mine + theirs for step in steps])
    )
    await tables.add_labels_to_words()
    return [(row, [call["tool"] for step in steps for call in orjson.loads(step.calls or "[]")]) for row, steps in mine]


@pytest.mark.timeout(WALK_MAX_S)
async def test_filters_and_orders_agree_with_a_walk_over_all_jobs(
    tables: Store, stored: list[tuple[JobRow, list[str]]]
):
    views, rng = ViewHandlers(tables), random.Random(11)
    for _ in range(QUESTIONS):
        chosen = rng.sample(list(conditions(rng, datetime.now(UTC))), rng.choice([1, 1, 2, 3]))
        asked: dict[str, Any] = {name: value for condition, _ in chosen for name, value in condition.items()}
        meets = [meet for condition, meet in chosen if all(asked[name] == value for name, value in condition.items())]
        sort = rng.choice(get_args(JobOrder))
        if {"agent", "agents"} <= asked.keys() or {"status", "statuses"} <= asked.keys():
            continue
        wanted = [row for row, tools in stored if all(meet(row, tools) for meet in meets)]

        found = await every_page(views, ListJobs(tenant="acme", limit=200, sort=sort, **asked))

        assert found == ordered(wanted, sort), (asked, sort)


async def test_counts_agree_with_a_walk_over_all_jobs(tables: Store, stored: list[tuple[JobRow, list[str]]]):
    wanted = [row for row, _ in stored if row.agent == "scout"]

    page = await ViewHandlers(tables).list_jobs(ListJobs(tenant="acme", agent="scout", facets=True, limit=1))

    assert page.facets is not None
    assert page.facets.jobs == len(wanted)
    assert page.facets.status == Counter(row.status for row in wanted)
    assert page.facets.agent == {"scout": len(wanted)}
    assert page.facets.model == Counter(f"{row.provider}/{row.model}" for row in wanted if row.model)


@pytest.mark.parametrize("asked", [{"q": "refund"}, {"tags": ("case:7",)}, {"tool": "mail", "lane": "batch"}], ids=str)
async def test_counts_of_words_agree_in_however_many_spans(
    tables: Store, stored: list[Any], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(job_counts, "NEAR", 20)
    monkeypatch.setattr(job_counts, "MANY_OF_NEAR", 21)
    views = ViewHandlers(tables)
    found = await every_page(views, ListJobs(tenant="acme", limit=200, **asked))

    monkeypatch.setattr(job_counts, "COUNTED_BY_WORDS_MAX", len(found) + 1)
    whole = (await views.list_jobs(ListJobs(tenant="acme", limit=1, facets=True, **asked))).facets
    monkeypatch.setattr(job_counts, "COUNTED_BY_WORDS_MAX", 25)
    newest = (await views.list_jobs(ListJobs(tenant="acme", limit=1, facets=True, **asked))).facets

    assert whole is not None and newest is not None
    rows = {row.job_id: row for row, _ in stored}
    assert (whole.jobs, newest.jobs, newest.counted_max) == (len(found), 25, 25)
    assert whole.status == Counter(rows[job_id].status for job_id in found)
    assert newest.agent == Counter(rows[job_id].agent for job_id in found[:25])


async def test_words_of_many_jobs_are_counted_among_the_newest(
    tables: Store, stored: list[Any], monkeypatch: pytest.MonkeyPatch
):
    views, asked = ViewHandlers(tables), ListJobs(tenant="acme", limit=1, facets=True, q="refund")
    monkeypatch.setattr(job_counts, "NEAR", 100)
    monkeypatch.setattr(job_counts, "MANY_OF_NEAR", 1)
    monkeypatch.setattr(job_counts, "READ_MAX", 300)
    newest = [row for row, _ in sorted(stored, key=lambda one: (one[0].created_at, one[0].job_id), reverse=True)]
    found = await every_page(views, ListJobs(tenant="acme", limit=200, q="refund"))
    with_words = [row for row in newest if row.job_id in found]
    among = [row for row in newest[:300] if row in with_words]

    counts = (await views.list_jobs(asked)).facets
    monkeypatch.setattr(job_counts, "READ_MAX", len(newest) + 1)
    whole = (await views.list_jobs(asked)).facets

    assert counts is not None and whole is not None
    assert (counts.jobs, counts.counted_since) == (len(among), newest[299].created_at)
    assert counts.status == Counter(row.status for row in among)
    assert (whole.jobs, whole.counted_since) == (len(with_words), None)


@pytest.mark.parametrize("sort", get_args(JobOrder))
async def test_a_page_that_has_all_is_counted_as_more_pages_are(tables: Store, stored: list[Any], sort: JobOrder):
    asked = ListJobs(tenant="acme", facets=True, sort=sort, tool="refund", user_id="u1", agent="critic", tier="flash")

    one, all_of_them = [
        (await ViewHandlers(tables).list_jobs(asked.model_copy(update={"limit": limit}))) for limit in (1, 200)
    ]

    assert one.facets and all_of_them.facets and one.next_cursor and not all_of_them.next_cursor
    assert {**one.facets.model_dump(), "counted_max": 0} == {**all_of_them.facets.model_dump(), "counted_max": 0}


async def test_an_overview_counts_what_has_not_ended(tables: Store, stored: list[tuple[JobRow, list[str]]]):
    waiting = [row for row, _ in stored if row.status == "parked" and '"approval"' in (row.waiting_for or "")]

    overview = await ViewHandlers(tables).get_overview(GetJobsOverview(tenant="acme"))

    assert sum(kind.jobs for kind in overview.open) == sum(row.ended_at is None for row, _ in stored)
    asked = [kind for kind in overview.open if kind.waiting_for == "approval"]
    assert sum(kind.jobs for kind in asked) == len(waiting)
    assert min(kind.oldest_at for kind in asked) == min(row.created_at for row in waiting)
    assert [lately.hours for lately in overview.spent] == [24, 168]


@alone
async def test_what_was_spent_is_summed_again_after_a_rest(platform: TracingPlatform):
    await store_jobs(platform.tables)
    now, admin = 0.0, await asyncpg.connect(platform.database.dsn)

    def clock() -> float:
        nonlocal now
        now += QUICK_S / 10
        return now

    await admin.execute("UPDATE tracing.jobs SET created_at = now()")
    sums = SpentSums(platform.tables, clock=clock)
    first = await sums.of("acme")
    assert first[0].ended
    try:
        await admin.execute("DELETE FROM tracing.jobs WHERE tenant = 'acme'")
        assert await sums.of("acme") == first
        now += REST_MAX_S
        assert await sums.of("acme") != first
    finally:
        await admin.close()


@alone
async def test_a_slow_sum_is_shown_while_the_next_is_made(platform: TracingPlatform):
    await store_jobs(platform.tables)
    now, admin = 0.0, await asyncpg.connect(platform.database.dsn)

    def clock() -> float:
        nonlocal now
        now += QUICK_S * 2
        return now

    await admin.execute("UPDATE tracing.jobs SET created_at = now()")
    sums = SpentSums(platform.tables, clock=clock)
    first = await sums.of("acme")
    await admin.execute("DELETE FROM tracing.jobs WHERE tenant = 'acme'")
    await admin.close()
    now += REST_MAX_S

    assert await sums.of("acme") == first

    async def is_new() -> bool:
        return await sums.of("acme") != first

    await until(is_new, why="the next sum is made without a caller that waits")


@alone
async def test_the_sums_of_day_and_week_are_those_of_their_rows(platform: TracingPlatform):
    await store_jobs(platform.tables)
    admin = await asyncpg.connect(platform.database.dsn)
    try:
        moved = "UPDATE tracing.jobs SET created_at = now() - make_interval(hours => 10 * (ctid::text::point)[1]::int)"
        await admin.execute(moved)
        rows = await admin.fetch("SELECT *, now() - created_at AS age FROM tracing.jobs WHERE tenant = 'acme'")
    finally:
        await admin.close()

    for lately in await SpentSums(platform.tables).of("acme"):
        ended = [row for row in rows if row["ended_at"] and row["age"] < timedelta(hours=lately.hours)]
        known = [row for row in ended if None not in (row["cost_usd"], row["estimated_cost_usd"])]
        assert lately.ended == Counter(row["status"] for row in ended) and len(ended) > 10
        assert lately.actual_usd == sum(row["cost_usd"] for row in known)
        assert lately.predicted_usd == sum(row["estimated_cost_usd"] for row in known)


async def test_a_cursor_of_another_order_is_refused(tables: Store, stored: list[Any]):
    views = ViewHandlers(tables)
    page: JobPage = await views.list_jobs(ListJobs(tenant="acme", limit=5, sort="dearest"))

    with pytest.raises(BadCursor):
        await views.list_jobs(ListJobs(tenant="acme", cursor=page.next_cursor))


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"q": "rareword"}, "jobs_by_words"),
        ({"tags": ("case:99",)}, "jobs_by_words"),
        ({"cites": "tides"}, "jobs_by_words"),
        ({"agent_label": "rare"}, "jobs_by_words"),
        ({"sort": "dearest"}, "jobs_dearest"),
        ({"sort": "slowest"}, "jobs_slowest"),
        ({"waiting_for": ("approval",)}, "jobs_parked"),
    ],
)
async def test_an_index_serves_what_is_asked_most(
    tables: Store, module_platform: Platform, stored: list[Any], asked: dict[str, Any], index: str
):
    admin = await asyncpg.connect(module_platform.database.dsn)
    await admin.execute("ANALYZE tracing.jobs")
    await admin.close()
    *_, statement = page_statements(ListJobs(tenant="acme", limit=10, **asked), None, shown=100)

    async with tables.tenant("acme") as conn:
        # So few rows are cheaper to scan: what counts is that the index may be taken under row-level security.
        await conn.execute("SET LOCAL enable_seqscan = off")
        await conn.execute(f"SET LOCAL enable_{'indexscan' if 'words' in index else 'sort'} = off")
        plan = "\n".join(row[0] for row in await conn.fetch(f"EXPLAIN {statement.sql}", *statement.arguments))

    assert index in plan


async def test_jobs_are_counted_from_an_index_alone(tables: Store, module_platform: Platform, stored: list[Any]):
    admin = await asyncpg.connect(module_platform.database.dsn)
    await admin.execute("VACUUM ANALYZE tracing.jobs")
    await admin.close()
    statement = counts_statement(ListJobs(tenant="acme", facets=True, agent="scout", since=BEGAN))

    async with tables.tenant("acme") as conn:
        await conn.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in await conn.fetch(f"EXPLAIN {statement.sql}", *statement.arguments))

    assert "Index Only Scan using jobs_counted" in plan
