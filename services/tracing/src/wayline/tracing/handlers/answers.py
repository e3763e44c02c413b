"""ViewHandlers about jobs, their traces and steps, queues and costs."""

from __future__ import annotations

import asyncpg

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts.errors import InvalidMessage, NotFound
from wayline.contracts.jobs import ANSWER_SHOWN_MAX, QueuePlace
from wayline.contracts.overview import GetJobsOverview, JobsOverview, OpenJobs
from wayline.contracts.traces import (
    CostTable,
    FindQueuePlaces,
    GetCosts,
    GetSessionCosts,
    GetSteps,
    GetTrace,
    JobPage,
    ListJobs,
    QueuePlaces,
    StepList,
    Totals,
    Trace,
)
from wayline.store import Record, Store
from wayline.tracing.errors import UnknownTimeZone
from wayline.tracing.rows import NOBODY
from wayline.tracing.views import row_views, trace_tree
from wayline.tracing.views.job_counts import count_jobs, counts_of
from wayline.tracing.views.job_search import page_statements
from wayline.tracing.views.spent_lately import SpentSums

SPANS_MAX = 20_000
"""Spans of one trace that are read; those made from the log come first."""
JOINED_MAX = 2_000
"""Spans of the tenant's own programs that a job's tree shows beside its own."""
COST_ROWS_MAX = 2_000
PAGE_MAX_BYTES = MESSAGE_MAX - 8 * 1024
"""Of the jobs of a page: with the rest of its reply it is one message."""
SHOWN = ANSWER_SHOWN_MAX + 1
"""Characters of an answer that are read for a list: one more shows that there is more."""
WHOLE = 2**31 - 1


class ViewHandlers:
    """Reads for one tenant at a time; another tenant's id is not found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spent = SpentSums(store)

    async def get_trace(self, asked: GetTrace) -> Trace:
        """Return the one tree of a trace, whatever became of the processes that made its spans."""
        if (asked.job_id is None) == (asked.trace_id is None):
            raise InvalidMessage(schema=GetTrace.schema_id(), reason="give either job_id or trace_id")
        sql = self._store.sql
        async with self._store.tenant(asked.tenant) as conn:
            if asked.job_id is not None:
                job = await conn.fetchrow(sql.job, asked.tenant, asked.job_id)
            else:
                job = await conn.fetchrow(sql.job_of_trace, asked.tenant, asked.trace_id)
        trace_id = job["trace_id"] if job else asked.trace_id
        if trace_id is None:
            raise NotFound("job", asked.job_id or "")
        most = min(asked.spans_max or SPANS_MAX, SPANS_MAX)
        nodes = await self._nodes(trace_id, asked, most, is_job=job is not None)
        if not nodes and job is None:
            raise NotFound("trace", trace_id)
        root = _root_of(nodes, job)
        totals = None
        if job is not None:
            jobs = trace_tree.jobs_below(root) | {job["job_id"]}
            totals = await self._store.fetchrow(asked.tenant, sql.job_totals, asked.tenant, sorted(jobs))
        return _trace(trace_id, nodes, root, job, totals, is_whole=len(nodes) < most)

    async def _nodes(self, trace_id: str, asked: GetTrace, most: int, *, is_job: bool) -> list[trace_tree.TreeNode]:
        tenant = asked.tenant
        # The trace is this tenant's job, so its spans without a tenant are the tenant's too.
        tenants = [tenant, NOBODY] if is_job else [tenant]
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.spans_of_trace, trace_id, tenants, most)
            if is_job:
                rows += await conn.fetch(
                    self._store.sql.joined_spans, tenant, trace_id, min(most, JOINED_MAX), asked.user_id
                )
        return [row_views.node(row) for row in rows]

    async def get_steps(self, asked: GetSteps) -> StepList:
        """Return the steps of a job, the first one first. Raises NotFound."""
        sql = self._store.sql
        async with self._store.tenant(asked.tenant) as conn:
            if await conn.fetchrow(sql.job, asked.tenant, asked.job_id) is None:
                raise NotFound("job", asked.job_id)
            rows = await conn.fetch(sql.steps_of_job, asked.tenant, asked.job_id)
        return StepList(job_id=asked.job_id, steps=tuple(row_views.step(row) for row in rows))

    async def list_jobs(self, asked: ListJobs) -> JobPage:
        """Return a page in the order asked for; one row more than asked for shows whether there is another.

        A page is no larger than a message, so it may hold fewer jobs than asked for. Raises BadCursor.
        """
        after = row_views.after_cursor(asked.cursor, asked.sort) if asked.cursor else None
        rows: list[Record] = []
        async with self._store.tenant(asked.tenant) as conn:
            for statement in page_statements(asked, after, shown=WHOLE if asked.whole_answers else SHOWN):
                rows = await conn.fetch(statement.sql, *statement.arguments)
                if len(rows) > asked.limit:
                    break
            counts = None
            if asked.facets:
                are_all = asked.cursor is None and asked.sort != "slowest" and len(rows) <= asked.limit
                counts = counts_of(rows) if are_all else await count_jobs(conn, asked)
        views = (row_views.job_view(row, whole=asked.whole_answers) for row in rows[: asked.limit])
        jobs = row_views.fitting(views, most_bytes=PAGE_MAX_BYTES)
        last = rows[len(jobs) - 1] if jobs and len(rows) > len(jobs) else None
        return JobPage(
            jobs=tuple(jobs), next_cursor=row_views.cursor(last, asked.sort) if last else None, facets=counts
        )

    async def get_overview(self, asked: GetJobsOverview) -> JobsOverview:
        """Return what has not ended, and what was spent lately."""
        sql = self._store.sql
        async with self._store.tenant(asked.tenant) as conn:
            waiting = await conn.fetch(sql.open_jobs, asked.tenant)
        return JobsOverview(
            open=tuple(OpenJobs(**dict(row)) for row in waiting), spent=await self._spent.of(asked.tenant)
        )

    async def find_queue_places(self, asked: FindQueuePlaces) -> QueuePlaces:
        """Return where those jobs stand that no executor has begun."""
        sql = self._store.sql.queue_places
        rows = await self._store.fetch(asked.tenant, sql, asked.tenant, list(asked.job_ids))
        return QueuePlaces(places=tuple(QueuePlace(**dict(row)) for row in rows))

    async def get_costs(self, asked: GetCosts) -> CostTable:
        """Sum what was spent, grouped, with the total of all groups. Raises UnknownTimeZone."""
        filters = (asked.agent, asked.model, asked.tool, asked.user_id, asked.session_id, asked.job_id)
        named = (asked.until, *filters, list(asked.tags) or None, asked.agent_version, asked.agent_label)
        shown = (asked.since, COST_ROWS_MAX, asked.tz, *named)
        sql = self._store.sql.costs
        try:
            rows = await self._store.fetch(asked.tenant, sql, asked.tenant, list(asked.group_by), *shown)
        except asyncpg.InvalidParameterValueError:
            raise UnknownTimeZone(asked.tz) from None
        if not rows:
            return CostTable(rows=(), filtered_by=asked.newer_conditions)
        total, *groups = rows
        once = None
        if "tag" in asked.group_by:
            # A job counts in the group of each of its tags: the sum of these is no total.
            once = await self._store.fetchrow(asked.tenant, sql, asked.tenant, [], *shown)
        return CostTable(
            rows=tuple(row_views.cost_row(row, asked.group_by) for row in groups),
            total=row_views.cost_row(once or total, ()),
            groups=total["groups"],
            filtered_by=asked.newer_conditions,
        )

    async def get_session_costs(self, asked: GetSessionCosts) -> CostTable:
        """Sum what the jobs of one session spent."""
        sql, named = self._store.sql.session_costs, (asked.session_id, asked.since)
        row = await self._store.fetchrow(asked.tenant, sql, asked.tenant, *named)
        if row is None:
            return CostTable(rows=())
        return CostTable(rows=(), total=row_views.cost_row(row, ()), groups=1)


def _root_of(nodes: list[trace_tree.TreeNode], job: Record | None) -> trace_tree.TreeNode:
    """Grow the tree of a trace, and return its root, or of a job that another one started its place in there."""
    if job is None:
        return trace_tree.grow(nodes, trace_tree.first_of(nodes))
    made = row_views.root_of(job)
    root = next((node for node in nodes if node.span_id == made.span_id), made)
    top = trace_tree.first_of(nodes) if root.parent is not None else root
    trace_tree.grow(nodes, top)
    return root


def _trace(
    trace_id: str,
    nodes: list[trace_tree.TreeNode],
    root: trace_tree.TreeNode,
    job: Record | None,
    spent: Record | None,
    *,
    is_whole: bool,
) -> Trace:
    """Build the answer; its totals are the ledger's, never sums over spans."""
    totals = Totals(
        duration_ms=root.duration_ms,
        tokens=spent["tokens"] if spent else 0,
        cost_usd=None if spent is None or spent["unknown"] else spent["cost_usd"],
        spans=len(nodes) if root.parent is None else trace_tree.size(root),
        missing=trace_tree.missing(nodes, root) if is_whole else 0,
        calls_unsettled=spent["unsettled"] if spent else 0,
    )
    job_id = job["job_id"] if job else None
    return Trace(trace_id=trace_id, job_id=job_id, root=trace_tree.shown(root, trace_id), totals=totals)
