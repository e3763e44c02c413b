"""The statements that find jobs, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from wayline.contracts.traces import JobOrder, ListJobs
from wayline.tracing.views.job_conditions import Statement, conditions_of

NEAR = 2_000
"""The first jobs in the order that is asked for, among which words are looked for first."""
Place = tuple[Decimal | None, datetime, str]
"""Where a page ended: what it is in order of, the time and the id of its last job."""
FOUND = """
    tenant, job_id, trace_id, status, agent, agent_version, session_id, user_id, provider, model, tier, route_reason,
    estimated_cost_usd, steps, usage, cost_usd, costs, left(answer, {shown}) AS answer, partial, reason, citations,
    error_code, error_message, waiting_for, created_at, ended_at, input, fingerprint, schedule, beyond, tags, feedback,
    {place} AS place"""
PLACES = {
    "dearest": "coalesce(cost_usd, -1)",
    "slowest": "extract(epoch FROM ended_at - created_at)",
}
"""What jobs are in order of, the largest first, before they are in order of their time."""
NEWEST = "ORDER BY created_at DESC, job_id DESC"
ORDERS = {
    "newest": NEWEST,
    "oldest": "ORDER BY created_at, job_id",
    **{sort: f"ORDER BY {place} DESC, created_at DESC, job_id DESC" for sort, place in PLACES.items()},
}


def page_statements(asked: ListJobs, after: Place | None, *, shown: int) -> Iterator[Statement]:
    """Yield the statements that read a page, and one job more where there is another, until one of them fills it.

    `shown` is how many characters of an answer are read. What is looked for by words is first looked for among the
    first jobs: a common word fills the page from them, and of a rare one the index has few.
    """
    order = PLACES.get(asked.sort)
    columns = FOUND.format(shown=shown, place=order or "NULL")
    ordered = ORDERS[asked.sort]
    end = f"{ordered} LIMIT {asked.limit + 1}"
    where = conditions_of(asked)
    if asked.sort == "slowest":
        where.add_scope("ended_at IS NOT NULL")
    if after is not None:
        where.add_scope(*_after(after, asked.sort))
    if where.arms and not where.are_few:
        first = f"SELECT * FROM jobs WHERE {where.scoped} {ordered} LIMIT {NEAR}"
        yield where.statement(f"SELECT {columns}\nFROM ({first}) AS jobs\nWHERE {where.whole}\n{end}")
        matched = f"WITH matched AS MATERIALIZED ({where.from_arms()})"
        joined = "FROM jobs JOIN matched USING (tenant, job_id)"
        yield where.statement(f"{matched}\nSELECT {columns}\n{joined}\nWHERE tenant = $1\n{end}")
    elif order or where.arms:
        yield where.statement(f"SELECT {columns}\nFROM jobs\nWHERE {where.whole}\n{end}")
    else:
        # What an index has of jobs by their time is looked at there; the row is read of those on the page alone.
        found = f"(SELECT tenant, job_id FROM jobs WHERE {where.whole} {end}) AS found"
        yield where.statement(f"SELECT {columns}\nFROM {found} JOIN jobs USING (tenant, job_id)\n{ordered}")


def _after(place: Place, sort: JobOrder) -> tuple[Any, ...]:
    """Return the condition, and its values, that a job comes after the last one of the page before."""
    order = PLACES.get(sort)
    if order is None:
        return f"(created_at, job_id) {'>' if sort == 'oldest' else '<'} ({{}}::timestamptz, {{}}::text)", *place[1:]
    return f"({order}, created_at, job_id) < ({{}}::numeric, {{}}::timestamptz, {{}}::text)", *place
